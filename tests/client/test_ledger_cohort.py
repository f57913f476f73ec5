"""Cohorts of any size and kind: one order, one digest, each id once."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.ledger import cohort
from curvote.ledger.book import Ledger
from curvote.ledger.cohort import ClientIds, Cohort, sorted_ids
from tests.ledgers import TENTH, reserve, says

WHOLE = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-200, 2000))
BATCH = 100
QUICK = settings(max_examples=200, deadline=None, derandomize=True)


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Make batches small, so that few ids are many batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohort, "BATCH_SIZE", BATCH)
        yield


@QUICK
@given(st.sets(WHOLE, min_size=1, max_size=60))
def test_numbers_stand_in_the_order_of_their_text(ids: set[int]) -> None:
    """As Python sorts the texts; so a ledger's digests are those of before."""
    expected = sorted(map(str, ids))
    assert sorted_ids(np.array(list(ids), dtype=np.int64)) == expected
    assert sorted_ids(list(map(str, ids))) == expected


def _many(make: Callable[[int], Any]) -> list[Any]:
    """Return so many ids that they take several batches."""
    rng = np.random.default_rng(3)
    return [make(int(i)) for i in rng.permutation(2 * BATCH + 10)]


@pytest.mark.parametrize("make", [int, "p{}".format, "\u00e9{}".format, "{}.0".format])
def test_an_array_and_its_pieces_are_one_cohort(make: Callable[[int], Any]) -> None:
    """Whole or in chunks, in batches of one size, sorted over all of them."""
    ids = np.array(_many(make))
    whole = Cohort(ids)
    pieces = Cohort(part for part in np.array_split(ids, 7))
    batches = list(whole)
    assert [len(batch) for batch in batches] == [BATCH, BATCH, 10]
    assert list(pieces) == batches
    assert pieces.n == whole.n == len(ids)
    flat = [name for batch in batches for name in batch]
    assert flat == sorted(flat)


@pytest.mark.parametrize("batch", [1, 10])
def test_numbers_and_texts_mix(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """A number and its text are one client, in whatever chunks they come."""
    monkeypatch.setattr(cohort, "BATCH_SIZE", batch)
    pieces = [np.arange(5), np.array(["5", "x"])]
    assert sorted_ids(iter(pieces)) == ["0", "1", "2", "3", "4", "5", "x"]
    with pytest.raises(UserError, match="1 of 7 client ids"):
        Cohort(iter([np.arange(5), np.array(["4", "x"])]))


def test_cohorts_without_room_are_refused_with_all_of_them_counted(ledger):
    """Though the first batch tells already; nothing of it is written."""
    n = 5 * BATCH
    for i in range(10):
        reserve(ledger, f"{i}", np.arange(i % 2, n))
    before = says(ledger.path)
    with pytest.raises(UserError, match=f"{n - 1} of {n + 7} clients"):
        reserve(ledger, "more", np.arange(1, n + 8), Budget(0.5, 1e-8))
    assert says(ledger.path) == before
    assert before[2] == []


@pytest.mark.parametrize("make", [int, str])
def test_one_repeated_among_many_is_refused(make: Callable[[int], Any]) -> None:
    """Also where the two are at the seam of two batches."""
    ids = [*_many(make), make(7)]
    with pytest.raises(UserError, match=f"1 of {len(ids)} client ids"):
        Cohort(np.array(ids))


def test_a_large_cohort_is_counted_as_a_small_one(ledger: Ledger) -> None:
    """Three releases of overlapping cohorts of several batches; totals are exact."""
    n = 2 * BATCH + 10
    reserve(ledger, "a", np.arange(n))
    reserve(ledger, "b", (part for part in np.array_split(np.arange(5, n + 5), 3)))
    reserve(ledger, "c", np.arange(n + 100, n + 120))
    ledger.cancel("c")
    sums = dict(zip(*map(list, _spent(ledger)), strict=True))
    assert len(sums) == n + 5
    assert {sums[str(i)] for i in (*range(5), n, n + 4)} == {TENTH.epsilon}
    assert {sums[str(i)] for i in range(5, n)} == {2 * TENTH.epsilon}
    assert ledger.count_overlap("p", np.arange(n - 5, n + 300)) == 10
    assert ledger.count_overlap("nowhere", np.arange(3)) == 0
    assert ledger.count_spenders("p") == n + 5
    assert says(ledger.path)[2] == []


def _spent(ledger: Ledger) -> tuple[ClientIds, np.ndarray]:
    spent = ledger.spent("p")
    return spent.clients, spent.epsilon
