"""Looking often costs nothing: chances over all looks, exactly computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from curvote.systems.utility.method import intervals

Array = NDArray[np.float64]
Decide = Callable[[Array, int, float, float], NDArray[np.int8]]


def stopped(
    decide: Decide, share: float, target: float, *, looks: int, last: int
) -> tuple[float, float, float]:
    """Return the chances to name above, and below, and the mean number of draws.

    ``looks`` draws lie between two looks, ``last`` is where one gives up.
    """
    alive, named, mean = np.ones(1), {1: 0.0, -1: 0.0}, 0.0
    for draws in range(1, last + 1):
        mean += alive.sum()
        alive = np.convolve(alive, [1 - share, share])
        if draws % looks == 0:
            side = decide(np.arange(draws + 1.0), draws, target, 0.95)
            for way in named:
                named[way] += alive[side == way].sum()
            alive = np.where(side == 0, alive, 0)
            if alive.sum() < 1e-5:
                break
    return named[1], named[-1], float(mean)


def by_fixed_intervals(
    hits: Array, draws: int, target: float, confidence: float
) -> NDArray[np.int8]:
    """The broken twin: an interval made for one look, looked at often."""
    low, high = intervals.binomial_interval(hits, draws, confidence)
    return (low > target).astype(np.int8) - (high < target).astype(np.int8)


def by_sequence_of_intervals(
    hits: Array, draws: int, target: float, confidence: float
) -> NDArray[np.int8]:
    """Name the side on which the interval lies that holds at every look."""
    low, high = intervals.anytime_interval(hits, np.array(draws), confidence)
    return (low > target).astype(np.int8) - (high < target).astype(np.int8)


@pytest.mark.parametrize("target", [0.03, 0.5, 0.8])
def test_wrong_side_is_named_rarely_at_every_look(target: float) -> None:
    """At the target itself, where it is easiest: either side in at most 5 %."""
    above, below, _ = stopped(intervals.decide_side, target, target, looks=1, last=400)
    assert max(above, below) <= 0.05
    assert above + below > 0.01, "the check would not notice a test that never ends"


def test_looking_often_at_fixed_intervals_is_caught() -> None:
    """Made for one look they name a wrong side in more than 15 % of cases."""
    above, below, _ = stopped(by_fixed_intervals, 0.8, 0.8, looks=1, last=400)
    assert above + below > 0.15


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_all_intervals_together_cover(share: float) -> None:
    """The chance that any look ever misses the share."""
    found = stopped(by_sequence_of_intervals, share, share, looks=1, last=300)
    assert found[0] + found[1] <= 0.05


@pytest.mark.parametrize("target", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("gap", [-0.05, 0.05, 0.1])
def test_targets_are_decided_by_a_thousand_draws(target: float, gap: float) -> None:
    """From .05 away: in the mean, looking every 50 draws; wrong in at most 5 %."""
    share = min(target + gap, 1.0)
    above, below, mean = stopped(
        intervals.decide_side, share, target, looks=50, last=3000
    )
    assert mean <= 1000
    wrong, right = (below, above) if gap > 0 else (above, below)
    assert wrong <= 0.05
    assert right > 0.95


def test_interval_narrows_around_the_share() -> None:
    """More draws of the same share tell more."""
    low, high = intervals.anytime_interval([8, 80, 8000], [10, 100, 10000], 0.95)
    assert (low < 0.8).all()
    assert (high > 0.8).all()
    assert (np.diff(high - low) < 0).all()
    assert high[2] - low[2] < 0.04


def test_ends_of_the_line_are_reached() -> None:
    """All hits, or none, leave that end open."""
    low, high = intervals.anytime_interval([0, 100], [100, 100], 0.95)
    assert low[0] == 0
    assert high[1] == 1
    assert high[0] < 0.1
    assert low[1] > 0.9
