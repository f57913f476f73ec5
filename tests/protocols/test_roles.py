"""Who plays which role: nobody two, no group two, always the same for one seed."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.messages import message
from curvote.messages import roles as roles_module
from curvote.messages.roles import ROLES, Senders, publisher_test_mask, split_roles

counts = st.integers(0, 30)
sizes = st.fixed_dictionaries(dict.fromkeys(ROLES, counts))


@given(sizes=sizes, spare=counts, seed=st.integers(0, 9), replicate=st.integers(0, 9))
def test_nobody_plays_two_roles_and_sizes_are_met(
    sizes: dict[str, int], spare: int, seed: int, replicate: int
) -> None:
    """Without groups every role has just the asked size."""
    n = sum(sizes.values()) + spare
    roles = split_roles(seed, replicate, n, sizes)
    taken = np.concatenate(list(roles.values()))
    assert {role: len(rows) for role, rows in roles.items()} == sizes
    assert len(set(taken.tolist())) == len(taken)
    assert set(taken.tolist()) <= set(range(n))


@given(
    groups=st.lists(st.integers(0, 12), min_size=1, max_size=80),
    shares=st.tuples(*[st.integers(0, 20)] * len(ROLES)),
    seed=st.integers(0, 99),
)
def test_no_group_stands_in_two_roles_and_none_overshoots(
    groups: list[int], shares: tuple[int, ...], seed: int
) -> None:
    """A role may be smaller than asked only if no group that is left would fit."""
    sizes = dict(zip(ROLES, shares, strict=True))
    n, codes = len(groups), np.array(groups)
    if sum(sizes.values()) > n:
        with pytest.raises(UserError, match="ask for fewer"):
            split_roles(seed, 0, n, sizes, codes)
        return
    roles = split_roles(seed, 0, n, sizes, codes)
    left = set(groups)
    for role in ROLES:
        mine = set(codes[roles[role]].tolist())
        assert mine <= left
        assert len(roles[role]) == sum(groups.count(g) for g in mine)
        left -= mine
        room = sizes[role] - len(roles[role])
        assert room >= 0
        assert all(groups.count(g) > room for g in left)


def test_replicates_and_seeds_split_differently() -> None:
    """Equal arguments give equal roles, others give others."""
    sizes = {"test": 20, "vote": 20, "train": 20, "public": 20}
    first = split_roles(1, 0, 100, sizes)["test"]
    assert np.array_equal(first, split_roles(1, 0, 100, sizes)["test"])
    assert not np.array_equal(first, split_roles(1, 1, 100, sizes)["test"])
    assert not np.array_equal(first, split_roles(2, 0, 100, sizes)["test"])


@given(
    flags=st.lists(st.booleans(), min_size=1, max_size=60),
    shares=st.tuples(*[st.integers(0, 12)] * len(ROLES)),
    grouped=st.booleans(),
    seed=st.integers(0, 99),
)
def test_those_set_aside_test_and_do_nothing_else(
    flags: list[bool], shares: tuple[int, ...], grouped: bool, seed: int
) -> None:
    """Whoever tests is set aside, nobody else is; more than there are is refused."""
    aside, n = np.array(flags), len(flags)
    sizes = dict(zip(ROLES, shares, strict=True))
    # Groups of two of the same part.
    order = np.argsort(np.argsort(aside, kind="stable"), kind="stable")
    groups = aside * 100 + order // 2 if grouped else None
    others = sum(sizes.values()) - sizes["test"]
    if sizes["test"] > aside.sum() or others > n - aside.sum():
        with pytest.raises(UserError, match="in the publisher's"):
            split_roles(seed, 0, n, sizes, groups, test_mask=aside)
        return
    roles = split_roles(seed, 0, n, sizes, groups, test_mask=aside)
    assert list(roles) == list(ROLES)
    taken = np.concatenate(list(roles.values()))
    assert len(set(taken.tolist())) == len(taken)
    for role, rows in roles.items():
        assert aside[rows].all() if role == "test" else not aside[rows].any()
        assert len(rows) == sizes[role] if groups is None else len(rows) <= sizes[role]


def test_a_column_says_who_is_set_aside() -> None:
    """None without the column, and for rows that a table fills with nothing."""
    assert publisher_test_mask({}) is None
    assert publisher_test_mask({"part": np.full(3, np.nan)}) is None
    found = publisher_test_mask({"part": np.array([0, 1, 1])})
    assert found is not None
    assert found.tolist() == [False, True, True]


@given(sizes=sizes, ends=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_senders_a_role_after_the_other_are_the_senders(
    sizes: dict[str, int], ends: tuple[float, float]
) -> None:
    """Who is asked and whom the ledger counts are found in these two ways."""
    roles = split_roles(3, 0, sum(sizes.values()), sizes)
    senders = Senders(("train", "vote"), *sorted(ends))
    parts = [*senders.parts(roles)]
    assert np.concatenate(parts).tolist() == senders.rows(roles).tolist()
    assert sum(map(len, parts)) == senders.count(sizes)


def test_narrow_numbers_are_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many clients, too: a frozen cohort keeps its roles and its questions."""
    sizes = {"test": 20, "vote": 20, "train": 20, "public": 20}
    task: Any = SimpleNamespace(candidates=SimpleNamespace(coef=np.zeros((7, 2))))

    def drawn() -> tuple[dict[str, np.ndarray], np.ndarray]:
        judge = message.assign_candidates(task, 100, np.random.default_rng(5))
        assert judge is not None
        return split_roles(1, 0, 100, sizes), judge

    wide, judge = drawn()
    for module in (roles_module, message):
        monkeypatch.setattr(module, "NARROW_COUNT", 1)
    narrow, small = drawn()
    assert {own.dtype for own in narrow.values()} == {np.dtype(np.int32)}
    assert (small.dtype, small.tolist()) == (np.int8, judge.tolist())
    for role in ROLES:
        assert narrow[role].tolist() == wide[role].tolist()
