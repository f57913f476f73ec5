"""Allocation of records to servers, and of the target's records to testing.

Pure functions of the seed, which every stage calls; nobody's records are in two places.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.chain.stage import Columns, StageContext
from curvote.chain.streams import generator
from curvote.data import lookup
from curvote.messages.roles import split_roles

Rows = NDArray[np.int64]


def server_rows(context: StageContext, records: Columns) -> dict[str, Rows]:
    """Return the rows of ``records`` of each server, volunteers left out."""
    params = context.params
    n, servers = len(records["label"]), params["names"]
    groups = records["group"] if params["source"].get("groups") else None
    volunteers = split_roles(
        params["seed"], context.number, n, params["clients"], groups
    )["public"]
    private_rows = np.setdiff1d(np.arange(n), volunteers)
    if lookup.servers(params["source"]) is not None:
        codes = records["group"][private_rows]
        return {name: private_rows[codes == code] for code, name in enumerate(servers)}
    rng = generator(params["seed"], "shared", "deal", context.number)
    shuffled = _shuffle_rows(private_rows, groups, rng)
    return dict(zip(servers, _deal_rows(shuffled, len(servers)), strict=True))


def split_test(
    context: StageContext, rows: Rows, records: Columns, test: float
) -> tuple[Rows, Rows]:
    """Return (test rows, kept rows) of a server; groups stay together.

    More to be tested than there are, or all of them, is a UserError.
    """
    size = test_size(test, len(rows))
    if size >= len(rows):
        raise UserError(
            f"{size} records are to be tested, but the target holds only {len(rows)}.",
            where=("transfer", "test"),
        )
    lone = lookup.servers(context.params["source"]) is not None
    groups = (
        None if lone or not context.params["source"].get("groups") else records["group"]
    )
    rng = generator(context.params["seed"], "shared", "set_aside", context.number)
    test_rows, kept_rows, room = [rows[:0]], [rows[:0]], size
    for group_rows in _shuffle_rows(rows, groups, rng):
        fits = len(group_rows) <= room
        (test_rows if fits else kept_rows).append(group_rows)
        room -= len(group_rows) * fits
    return np.concatenate(test_rows), np.concatenate(kept_rows)


def test_size(test: float, n: int) -> int:
    """Return the number of test records for a number or a share."""
    return round(test * n) if 0 < test < 1 else int(test)


def _shuffle_rows(
    rows: Rows, groups: NDArray[np.int64] | None, rng: np.random.Generator
) -> list[Rows]:
    """Return the rows in random order, whole groups together."""
    if groups is None:
        return list(rng.permutation(rows)[:, None])
    row_groups = groups[rows]
    return [
        rows[row_groups == group] for group in rng.permutation(np.unique(row_groups))
    ]


def _deal_rows(members: list[Rows], servers: int) -> list[Rows]:
    """Return one pile a server: each group goes to the smallest pile so far."""
    piles: list[list[Rows]] = [[] for _ in range(servers)]
    sizes = [0] * servers
    for rows in members:
        smallest = sizes.index(min(sizes))
        piles[smallest].append(rows)
        sizes[smallest] += len(rows)
    return [np.concatenate(pile) for pile in piles]


def public_sizes(
    source: Mapping[str, object], servers: list[str]
) -> dict[str, int | None]:
    """Return each server's number of records, as far as that is public."""
    server_sizes = lookup.servers(source)
    if server_sizes is not None:
        return dict(server_sizes)
    dataset, parameters = lookup.resolve_source(source)
    total = dataset.size(parameters)
    return {name: None if total is None else total // len(servers) for name in servers}
