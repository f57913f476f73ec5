"""Roles of clients in a replicate: who tests, votes, trains or volunteers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.chain.stage import generator

ROLES = ("test", "vote", "train", "judge", "public")
# From so many clients on, half of the memory counts.
NARROW_COUNT = 1 << 22
TRAIN_PART = " in the publisher's training part"
TEST_PART = " in the publisher's test part"
RowIndex = NDArray[np.int64]
Roles = dict[str, RowIndex]


@dataclass(frozen=True)
class Senders:
    """Clients who send a message: some roles, or a part of them.

    Roles are filled in a random order that everybody knows, so a part is a fair one.
    """

    roles: tuple[str, ...]
    start: float = 0.0
    end: float = 1.0

    def rows(self, roles: Mapping[str, RowIndex]) -> RowIndex:
        """Return the row numbers of these clients."""
        all_rows = np.concatenate([roles[role] for role in self.roles])
        return all_rows[self._part_slice(len(all_rows))]

    def parts(self, roles: Mapping[str, RowIndex]) -> Iterator[RowIndex]:
        """Yield the rows of each role in turn, without a copy of all."""
        wanted = self._part_slice(sum(len(roles[role]) for role in self.roles))
        start = 0
        for role in self.roles:
            low, high = (max(end - start, 0) for end in (wanted.start, wanted.stop))
            yield roles[role][low:high]
            start += len(roles[role])

    def count(self, sizes: Mapping[str, int]) -> int:
        """Return the number of senders if each role has its size."""
        n = sum(sizes.get(role, 0) for role in self.roles)
        return len(range(n)[self._part_slice(n)])

    def _part_slice(self, n: int) -> slice:
        return slice(round(self.start * n), round(self.end * n))


TRAINING = Senders(("train",))
VOTERS = Senders(("vote",))
EVERYBODY = Senders(("train", "vote"))
JUDGES = Senders(("judge",))


_PERCENT: Final = re.compile(r"(\d+(?:\.\d*)?) ?%")
MOST_JUDGES: Final = 0.5


def parse_percent(value: Any) -> Any:
    """Return the share that a text such as ``10 %`` states, else the value itself."""
    match = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) / 100 if match else value


def set_judges_aside(values: dict[str, Any]) -> dict[str, Any]:
    """Return settings with the share ``judges`` taken from those who train and vote.

    Both roles give their last part. What it was taken from before, or what is wrong,
    stays as it is; other judges than that share are a ValueError.
    """
    clients, share = values.get("clients"), parse_percent(values.get("judges"))
    if not isinstance(clients, dict):
        return values
    share = share if isinstance(share, int | float) and 0 < share <= MOST_JUDGES else 0
    train, vote, judges = (clients.get(role, 0) for role in ("train", "vote", "judge"))
    if {type(train), type(vote), type(judges)} != {int}:
        return values
    judge = round(share * (train + vote + judges))
    if judges not in (0, judge):
        raise ValueError("clients.judge follows from `judges`: take it out")
    if judges or not judge:
        return values
    voting = round(share * vote)
    rest = {"train": train - judge + voting, "vote": vote - voting, "judge": judge}
    return values | {"clients": clients | rest}


def split_roles(
    seed: int,
    replicate: int,
    n: int,
    sizes: Mapping[str, int],
    groups: NDArray[np.int64] | None = None,
    *,
    test_mask: NDArray[np.bool_] | None = None,
) -> Roles:
    """Return the row numbers of each role among ``n`` clients.

    Roles are filled in the order of `ROLES` from a random order. With
    ``groups`` (n,) whole groups are taken and one that would overshoot a role's size is
    passed over, so no group stands in two roles and a role may end up smaller than
    asked. With ``test_mask`` (n,) those who test are taken from its clients, and all
    other roles from the rest. Asking for more clients than there are is a UserError.
    """
    rng = generator(seed, "shared", "split", replicate)
    if test_mask is None:
        return _fill_roles(rng, n, sizes, groups)
    roles: Roles = {}
    for is_test, where in ((False, TRAIN_PART), (True, TEST_PART)):
        rows = np.flatnonzero(test_mask == is_test)
        own_sizes = {r: n * ((r == "test") == is_test) for r, n in sizes.items()}
        own_groups = None if groups is None else groups[rows]
        own_roles = _fill_roles(rng, len(rows), own_sizes, own_groups, where)
        roles |= {r: rows[own_roles[r]] for r in ROLES if (r == "test") == is_test}
    return {role: roles[role] for role in ROLES}


def roles_of_table(
    clients: Mapping[str, NDArray[Any]], params: Mapping[str, Any], replicate: int
) -> Roles:
    """Return the rows of each role among a table of clients."""
    groups = clients["group"] if params["source.groups"] else None
    n, test_mask = len(clients["label"]), publisher_test_mask(clients)
    return split_roles(
        params["seed"], replicate, n, params["clients"], groups, test_mask=test_mask
    )


def publisher_test_mask(
    columns: Mapping[str, NDArray[Any]],
) -> NDArray[np.bool_] | None:
    """Return the mask of the publisher's test clients, None if unstated."""
    part = columns.get("part")
    if part is None or (len(part) and not np.isfinite(part).all()):
        return None
    return np.asarray(part == 1)


def _fill_roles(
    rng: np.random.Generator,
    n: int,
    sizes: Mapping[str, int],
    groups: NDArray[np.int64] | None,
    where: str = "",
) -> Roles:
    """Return the roles of ``n`` clients, by group where there are groups.

    Of very many it has numbers of 32 bits, in the same order.
    """
    sizes = dict.fromkeys(ROLES, 0) | {**sizes}
    if sum(sizes.values()) > n:
        raise too_many_error(sizes, n, where)
    if groups is None:
        narrow = np.int32 if NARROW_COUNT <= n <= np.iinfo(np.int32).max else np.int64
        order: Any = np.arange(n, dtype=narrow)
        rng.shuffle(order)
        ends = np.cumsum([sizes[role] for role in ROLES])
        parts = np.split(order[: ends[-1]], ends[:-1])
        return dict(zip(ROLES, parts, strict=True))
    members = _group_rows(groups)
    waiting = [int(g) for g in rng.permutation(len(members))]
    roles: Roles = {}
    for role in ROLES:
        remaining, rows, room = [], [np.empty(0, dtype=np.int64)], sizes[role]
        for group in waiting:
            if len(members[group]) <= room:
                rows.append(members[group])
                room -= len(members[group])
            else:
                remaining.append(group)
        roles[role], waiting = np.concatenate(rows), remaining
    return roles


def too_many_error(sizes: Mapping[str, int], n: int, where: str = "") -> UserError:
    """Return the error for more clients than there are."""
    named = [r for r in reversed(ROLES) if sizes.get(r) or r not in JUDGES.roles]
    parts = " + ".join(f"{role} {sizes[role]}" for role in named)
    total = sum(sizes.values())
    return UserError(
        f"{parts} asks for {total}, but there are only {n}{where}; ask for fewer.",
        where=("clients",),
    )


def _group_rows(groups: NDArray[np.int64]) -> list[RowIndex]:
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order])) + 1
    return [np.asarray(part) for part in np.split(order, starts)]
