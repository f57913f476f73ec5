"""Who plays which role in a replicate: a pure function that every stage calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.streams import generator
from curvote.errors import UserError

ROLES = ("test", "vote", "train", "public")
# From so many clients on, half of the memory counts.
NARROW = 1 << 22
TRAIN_PART = " in the publisher's training part"
TEST_PART = " in the publisher's test part"
Index = NDArray[np.int64]
Roles = dict[str, Index]


@dataclass(frozen=True)
class Senders:
    """Who sends a message: some roles, or the part of them from ``start`` to ``end``.

    Roles are filled in a random order that everybody knows, so a part is a fair one.
    """

    roles: tuple[str, ...]
    start: float = 0.0
    end: float = 1.0

    def rows(self, roles: Mapping[str, Index]) -> Index:
        """Return the row numbers of these clients."""
        everybody = np.concatenate([roles[role] for role in self.roles])
        return everybody[self._part(len(everybody))]

    def parts(self, roles: Mapping[str, Index]) -> Iterator[Index]:
        """Yield the same a role after the other, without a copy of them."""
        wanted = self._part(sum(len(roles[role]) for role in self.roles))
        start = 0
        for role in self.roles:
            low, high = (max(end - start, 0) for end in (wanted.start, wanted.stop))
            yield roles[role][low:high]
            start += len(roles[role])

    def count(self, sizes: Mapping[str, int]) -> int:
        """Return how many there are if each role has its size."""
        n = sum(sizes[role] for role in self.roles)
        return len(range(n)[self._part(n)])

    def _part(self, n: int) -> slice:
        return slice(round(self.start * n), round(self.end * n))


TRAINING = Senders(("train",))
VOTERS = Senders(("vote",))
EVERYBODY = Senders(("train", "vote"))


def split(
    seed: int,
    replicate: int,
    n: int,
    sizes: Mapping[str, int],
    groups: NDArray[np.int64] | None = None,
    *,
    aside: NDArray[np.bool_] | None = None,
) -> Roles:
    """Return the row numbers of each role among ``n`` clients.

    Roles are filled in the order test, vote, train, public from a random order. With
    ``groups`` (n,) whole groups are taken and one that would overshoot a role's size is
    passed over, so no group stands in two roles and a role may end up smaller than
    asked. With ``aside`` (n,) those who test are taken from its clients, and all
    other roles from the rest. Asking for more clients than there are is a UserError.
    """
    rng = generator(seed, "shared", "split", replicate)
    if aside is None:
        return _filled(rng, n, sizes, groups)
    tests = {role: sizes[role] * (role == "test") for role in ROLES}
    others = {role: sizes[role] - tests[role] for role in ROLES}
    rest = _among(rng, np.flatnonzero(~aside), others, groups, TRAIN_PART)
    tested = _among(rng, np.flatnonzero(aside), tests, groups, TEST_PART)
    return rest | {"test": tested["test"]}


def played(
    clients: Mapping[str, NDArray[Any]], params: Mapping[str, Any], replicate: int
) -> Roles:
    """Return the rows of each role among a table of clients, as settings deal them."""
    groups = clients["group"] if params["source.groups"] else None
    n, aside = len(clients["label"]), set_aside(clients)
    return split(params["seed"], replicate, n, params["clients"], groups, aside=aside)


def set_aside(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_] | None:
    """Return which clients their publisher set aside for testing, None if unsaid."""
    part = columns.get("part")
    if part is None or (len(part) and not np.isfinite(part).all()):
        return None
    return np.asarray(part == 1)


def _among(
    rng: np.random.Generator,
    rows: Index,
    sizes: Mapping[str, int],
    groups: NDArray[np.int64] | None,
    where: str,
) -> Roles:
    """Return the roles of clients ``rows``, who are all that may be asked."""
    own = None if groups is None else groups[rows]
    roles = _filled(rng, len(rows), sizes, own, where)
    return {role: rows[places] for role, places in roles.items()}


def _filled(
    rng: np.random.Generator,
    n: int,
    sizes: Mapping[str, int],
    groups: NDArray[np.int64] | None,
    where: str = "",
) -> Roles:
    """Return the roles of ``n`` clients: parts of one array where nobody is grouped.

    Of very many it has numbers of 32 bits, in the same order.
    """
    if sum(sizes[role] for role in ROLES) > n:
        raise too_many(sizes, n, where)
    if groups is None:
        narrow = np.int32 if NARROW <= n <= np.iinfo(np.int32).max else np.int64
        order: Any = np.arange(n, dtype=narrow)
        rng.shuffle(order)
        return _slices(order, sizes)
    return _whole_groups(rng, groups, sizes)


def too_many(sizes: Mapping[str, int], n: int, where: str = "") -> UserError:
    """Return the error for more clients asked than there are ``where`` they are."""
    parts = " + ".join(f"{role} {sizes[role]}" for role in reversed(ROLES))
    asked = sum(sizes[role] for role in ROLES)
    return UserError(
        f"{parts} asks for {asked}, but there are only {n}{where}; ask for fewer.",
        where=("clients",),
    )


def _slices(order: Index, sizes: Mapping[str, int]) -> Roles:
    ends = np.cumsum([sizes[role] for role in ROLES])
    return dict(zip(ROLES, np.split(order[: ends[-1]], ends[:-1]), strict=True))


def _whole_groups(
    rng: np.random.Generator, groups: NDArray[np.int64], sizes: Mapping[str, int]
) -> Roles:
    members = _members(groups)
    waiting: Sequence[int] = [int(g) for g in rng.permutation(len(members))]
    roles: Roles = {}
    for role in ROLES:
        taken, waiting = _fill(waiting, members, sizes[role])
        rows = [members[g] for g in taken]
        roles[role] = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    return roles


def _members(groups: NDArray[np.int64]) -> list[Index]:
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order])) + 1
    return [np.asarray(part) for part in np.split(order, starts)]


def _fill(
    waiting: Sequence[int], members: list[Index], size: int
) -> tuple[list[int], list[int]]:
    taken: list[int] = []
    left: list[int] = []
    room = size
    for group in waiting:
        fits = len(members[group]) <= room
        (taken if fits else left).append(group)
        room -= len(members[group]) if fits else 0
    return taken, left
