"""Whether the newest votes are worse: Fisher's test, exact, for all candidates."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact, hypergeom

from curvote.base.errors import UserError
from curvote.learning.votes import drift_p_value, is_drift

COUNT = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted)
SOME = st.tuples(st.integers(0, 12), st.integers(1, 12)).map(sorted)
CANDIDATES = st.lists(st.tuples(SOME, SOME), min_size=1, max_size=3)


def told(rows: list[tuple[list[int], list[int]]]) -> float:
    """Return the level of rows of ((right, n) before, (right, n) newest)."""
    old, new = zip(*rows, strict=True)
    (right, n), (good, m) = np.transpose(old), np.transpose(new)
    return drift_p_value(n, right, m, good)


@given(COUNT, COUNT)
def test_of_one_candidate_it_is_fishers(old: list[int], new: list[int]) -> None:
    """One-sided: fewer right; where most are wrong, fewer wrong."""
    (right, n), (good, m) = old, new
    table = np.array([[good, m - good], [right, n - right]])
    if 2 * (right + good) < n + m:
        table = table[:, ::-1]
    exact = fisher_exact(table, alternative="less").pvalue if n and m else 1.0
    assert told([(old, new)]) == pytest.approx(exact, abs=1e-12)


@given(CANDIDATES)
def test_of_several_it_is_the_law_of_their_sum(rows: list[tuple[list[int], list[int]]]):
    """By enumeration of everything that could have come, given the totals."""
    laws, observed = [], 0
    for (right, n), (good, m) in rows:
        known, seen = right + good, good
        if 2 * known < n + m:
            known, seen = n + m - known, m - good
        observed += seen
        laws.append([hypergeom.pmf(k, n + m, known, m) for k in range(m + 1)])
    exact = sum(
        np.prod([law[k] for law, k in zip(laws, drawn, strict=True)])
        for drawn in product(*(range(len(law)) for law in laws))
        if sum(drawn) <= observed
    )
    assert told(rows) == pytest.approx(exact, abs=1e-9)


def test_a_reversed_candidate_falls_when_it_becomes_right() -> None:
    """What counts is how good it is with its sign turned."""
    assert is_drift(drift_p_value([90], [5], [30], [14]), 3.0)
    assert not is_drift(drift_p_value([90], [5], [30], [0]), 3.0)


def test_other_candidates_are_no_fall() -> None:
    """The newest votes are about the bad candidate only: nothing became worse."""
    level = drift_p_value([100, 100], [95, 55], [0, 100], [0, 55])
    assert level > 0.3
    pooled = fisher_exact([[55, 45], [150, 50]], alternative="less").pvalue
    assert is_drift(pooled, 3.0)


def test_false_alarms_are_as_rare_as_said() -> None:
    """Also with candidates that are as good as chance: reversal makes no alarm."""
    rng, draws, drop = np.random.default_rng(5), 4000, 1.645
    rates = np.array([0.5, 0.5, 0.52, 0.8])
    alarms = 0
    for _ in range(draws):
        right, good = rng.binomial(40, rates), rng.binomial(15, rates)
        alarms += is_drift(drift_p_value([40] * 4, right, [15] * 4, good), drop)
    share, level = alarms / draws, 0.05
    assert share <= level + 5 * np.sqrt(level * (1 - level) / draws)
    assert share > 0.005  # a test that never alarms would pass as well


def test_counts_that_cannot_be_are_refused() -> None:
    """More right than there were votes."""
    with pytest.raises(UserError, match="positive of"):
        drift_p_value([10], [5], [5], [6])
