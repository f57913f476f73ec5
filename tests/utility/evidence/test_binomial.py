"""Intervals of counted shares cover whatever the share, exactly computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from curvote.base.errors import UserError
from curvote.systems.utility.method.intervals import (
    Interval,
    binomial_interval,
    mean_share_interval,
)

Array = NDArray[np.float64]
Way = Callable[[Array, int, float], Interval]
SHARES = np.array([1e-4, 0.004, 0.02, 0.1, 0.37, 0.5, 0.75, 0.98, 0.995, 0.9999])


def missed(way: Way, draws: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the largest chances to lie above, and below, an interval."""
    hits = np.arange(draws + 1.0)
    low, high = way(hits, draws, confidence)
    chance = binom.pmf(hits, draws, SHARES[:, None])
    above = (chance * (SHARES[:, None] > high)).sum(axis=1).max()
    return float(above), float((chance * (SHARES[:, None] < low)).sum(axis=1).max())


def bell(hits: Array, draws: int, confidence: float) -> Interval:
    """The broken twin: the normal interval."""
    share = hits / draws
    half = norm.ppf((1 + confidence) / 2) * np.sqrt(share * (1 - share) / draws)
    return share - half, share + half


@pytest.mark.parametrize("draws", [1, 7, 50, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_interval_covers_at_every_share(draws: int, confidence: float) -> None:
    """Each side is missed with at most half of what may be missed."""
    assert (
        max(missed(binomial_interval, draws, confidence))
        <= (1 - confidence) / 2 + 1e-12
    )


def test_normal_interval_is_caught() -> None:
    """Close to one it misses half of the time or more, and the check above sees it."""
    assert max(missed(bell, 50)) > 0.5


def test_interval_is_no_wider_than_need_be() -> None:
    """5,000 draws, a hundredth of a printed radius: at most .0145 on each side."""
    low, high = binomial_interval(np.arange(5001), 5000, 0.95)
    assert ((high - low) / 2).max() <= 0.0145


def pooled(counts: Array, draws: int, confidence: float) -> tuple[float, float]:
    """The broken twin: Clopper-Pearson of all draws, nothing said of its last step."""
    low, high = binomial_interval(np.sum(counts), counts.size * draws, confidence)
    return float(low), float(high)


def chances(shares: Array) -> Array:
    """Return the law of the number of hits of independent draws."""
    law = np.ones(1)
    for share in shares:
        law = np.convolve(law, [1 - share, share])
    return law


def worst_side(way: Callable[..., tuple[float, float]], shares: Array) -> float:
    """Return the larger chance that an average lies above, or below, its interval."""
    law, mean = chances(shares), shares.mean()
    hits = np.arange(len(shares))
    ends = np.array([way(hits < number, 1, 0.95) for number in range(len(law))])
    return float(max(law[mean > ends[:, 1]].sum(), law[mean < ends[:, 0]].sum()))


def records() -> list[Array]:
    """Return shares of records: mixed, and all at one end but a few."""
    rng = np.random.default_rng(1)
    mixed = [rng.beta(0.3, 0.3, 30) for _ in range(40)]
    ends = [np.r_[np.ones(30 - k), np.full(k, p)] for k in (1, 3) for p in (0.5, 0.97)]
    return [*mixed, *ends, *(1 - each for each in ends)]


def test_average_of_fixed_records_covers() -> None:
    """Records of unequal shares: each side is missed with at most .025."""
    assert (
        max(worst_side(mean_share_interval, shares) for shares in records())
        <= 0.025 + 1e-12
    )


def test_average_next_to_one_needs_its_last_step() -> None:
    """One record of 30 that is wrong in .02515: pooled draws miss too often."""
    shares = np.r_[np.ones(29), 1 - 0.02515]
    assert worst_side(pooled, shares) > 0.025
    assert worst_side(mean_share_interval, shares) <= 0.025
    assert worst_side(mean_share_interval, 1 - shares) <= 0.025


def test_average_of_one_record_is_its_interval() -> None:
    """One record is no average."""
    low, high = binomial_interval(30, 50, 0.9)
    assert mean_share_interval([30], 50, 0.9) == (float(low), float(high))


@pytest.mark.parametrize(("hits", "draws"), [(3, 2), (-1, 2), (0, 0)])
def test_impossible_counts_are_refused(hits: int, draws: int) -> None:
    """Hits beyond the draws are a mistake."""
    with pytest.raises(UserError, match="Hits lie between"):
        binomial_interval(hits, draws, 0.95)
