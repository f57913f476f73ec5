"""The difference of two shares that were counted on the same draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import multinomial, norm

from curvote.systems.utility.method import intervals
from curvote.systems.utility.method.intervals import Interval

Way = Callable[[np.ndarray, np.ndarray, int, float], Interval]
DRAWS = 40
RATES = [(0.0, 0.0), (0.01, 0.0), (0.02, 0.05), (0.3, 0.05), (0.5, 0.5), (0.0, 0.97)]


def bell(more: np.ndarray, less: np.ndarray, draws: int, confidence: float) -> Interval:
    """The broken twin: the normal interval of the differences."""
    mean = (more - less) / draws
    half = norm.ppf((1 + confidence) / 2)
    half = half * np.sqrt(((more + less) / draws - mean**2) / draws)
    return mean - half, mean + half


def least_cover(way: Way, confidence: float = 0.95) -> float:
    """Return the least chance to cover, over all ``RATES``, by adding up all counts."""
    more, less = np.array(
        [(a, b) for a in range(DRAWS + 1) for b in range(DRAWS + 1 - a)]
    ).T
    low, high = way(more, less, DRAWS, confidence)
    same = DRAWS - more - less
    found = []
    for up, down in RATES:
        law = multinomial(DRAWS, [up, down, 1 - up - down])
        inside = (low <= up - down + 1e-12) & (up - down - 1e-12 <= high)
        found.append(law.pmf(np.column_stack([more, less, same]))[inside].sum())
    return float(min(found))


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_interval_covers_at_all_rates(confidence: float) -> None:
    """Also where differences are rare, or all one way."""
    assert least_cover(intervals.paired_interval, confidence) >= confidence - 1e-9


def test_normal_interval_is_caught() -> None:
    """Where differences are rare, none is seen, and it is certain of nothing there."""
    assert least_cover(bell) < 0.5


def test_rare_differences_need_fewer_draws() -> None:
    """Two that differ in 4 % of draws: narrower than twice as many draws of one."""
    from curvote.systems.utility.method import intervals

    low, high = intervals.paired_interval(20, 20, 1000, 0.95)
    alone = np.subtract(*intervals.binomial_interval(1400, 2000, 0.95)[::-1])
    assert high - low < 0.9 * alone
    assert low < 0 < high
