"""Which records each server holds, and which of the target's are only tested.

Pure functions of the seed, which every stage calls; nobody's records are in two places.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Here
from curvote.chain.streams import generator
from curvote.datasets import lookup
from curvote.errors import UserError
from curvote.protocols.roles import split

Rows = NDArray[np.int64]


def held(here: Here, records: Columns) -> dict[str, Rows]:
    """Return the rows of ``records`` that each server holds, volunteers left out."""
    params = here.params
    n, servers = len(records["label"]), params["names"]
    groups = records["group"] if params["source"].get("groups") else None
    public = split(params["seed"], here.number, n, params["clients"], groups)["public"]
    free = np.setdiff1d(np.arange(n), public)
    if lookup.servers(params["source"]) is not None:
        codes = records["group"][free]
        return {name: free[codes == code] for code, name in enumerate(servers)}
    rng = generator(params["seed"], "shared", "deal", here.number)
    members = _shuffled(free, groups, rng)
    return dict(zip(servers, _dealt(members, len(servers)), strict=True))


def set_aside(
    here: Here, rows: Rows, records: Columns, test: float
) -> tuple[Rows, Rows]:
    """Return (tested, kept) of a server's rows: whole groups where there are some.

    More to be tested than there are, or all of them, is a UserError.
    """
    size = tested(test, len(rows))
    if size >= len(rows):
        raise UserError(
            f"{size} records are to be tested, but the target holds only {len(rows)}.",
            where=("transfer", "test"),
        )
    lone = lookup.servers(here.params["source"]) is not None
    groups = (
        None if lone or not here.params["source"].get("groups") else records["group"]
    )
    rng = generator(here.params["seed"], "shared", "set_aside", here.number)
    taken, left, room = [rows[:0]], [rows[:0]], size
    for members in _shuffled(rows, groups, rng):
        fits = len(members) <= room
        (taken if fits else left).append(members)
        room -= len(members) * fits
    return np.concatenate(taken), np.concatenate(left)


def tested(test: float, n: int) -> int:
    """Return how many of ``n`` records ``test`` asks for: a number, or a share."""
    return round(test * n) if 0 < test < 1 else int(test)


def _shuffled(
    rows: Rows, groups: NDArray[np.int64] | None, rng: np.random.Generator
) -> list[Rows]:
    """Return the rows in random order, one by one or whole groups together."""
    if groups is None:
        return list(rng.permutation(rows)[:, None])
    own = groups[rows]
    return [rows[own == group] for group in rng.permutation(np.unique(own))]


def _dealt(members: list[Rows], servers: int) -> list[Rows]:
    """Return as many piles: each group goes to the one that is smallest so far."""
    piles: list[list[Rows]] = [[] for _ in range(servers)]
    sizes = [0] * servers
    for rows in members:
        least = sizes.index(min(sizes))
        piles[least].append(rows)
        sizes[least] += len(rows)
    return [np.concatenate(pile) for pile in piles]


def sizes(source: Mapping[str, object], servers: list[str]) -> dict[str, int | None]:
    """Return how many records each server holds, as far as that is public."""
    known = lookup.servers(source)
    if known is not None:
        return dict(known)
    dataset, parameters = lookup.chosen(source)
    total = dataset.size(parameters)
    return {name: None if total is None else total // len(servers) for name in servers}
