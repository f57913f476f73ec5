"""Intervals of shares, of a population's mean and of differences: all cover."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, multinomial, norm

from curvote.base.errors import UserError
from curvote.systems.utility.method import intervals
from curvote.systems.utility.method.intervals import (
    Interval,
    binomial_interval,
    mean_share_interval,
    population_mean_interval,
)

Array = NDArray[np.float64]
Way = Callable[[Array, int, float], Interval]
SHARES = np.array([1e-4, 0.004, 0.02, 0.1, 0.37, 0.5, 0.75, 0.98, 0.995, 0.9999])


def missed(way, draws, confidence=0.95):
    """Return the largest chances to lie above, and below, an interval."""
    hits = np.arange(draws + 1.0)
    low, high = way(hits, draws, confidence)
    chance = binom.pmf(hits, draws, SHARES[:, None])
    above = (chance * (SHARES[:, None] > high)).sum(axis=1).max()
    return float(above), float((chance * (SHARES[:, None] < low)).sum(axis=1).max())


def bell_of_shares(hits, draws, confidence):
    """The broken twin: the normal interval."""
    share = hits / draws
    half = norm.ppf((1 + confidence) / 2) * np.sqrt(share * (1 - share) / draws)
    return share - half, share + half


@pytest.mark.parametrize("draws", [1, 7, 50, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_interval_covers_at_every_share(draws, confidence):
    """Each side is missed with at most half of what may be missed."""
    assert (
        max(missed(binomial_interval, draws, confidence))
        <= (1 - confidence) / 2 + 1e-12
    )


def test_normal_interval_of_shares_is_caught():
    """Close to one it misses half of the time or more, and the check above sees it."""
    assert max(missed(bell_of_shares, 50)) > 0.5


def test_interval_is_no_wider_than_need_be():
    """5,000 draws, a hundredth of a printed radius: at most .0145 on each side."""
    low, high = binomial_interval(np.arange(5001), 5000, 0.95)
    assert ((high - low) / 2).max() <= 0.0145


def pooled(counts, draws, confidence):
    """The broken twin: Clopper-Pearson of all draws, nothing said of its last step."""
    low, high = binomial_interval(np.sum(counts), counts.size * draws, confidence)
    return float(low), float(high)


def chances(shares):
    """Return the law of the number of hits of independent draws."""
    law = np.ones(1)
    for share in shares:
        law = np.convolve(law, [1 - share, share])
    return law


def worst_side(way, shares):
    """Return the larger chance that an average lies above, or below, its interval."""
    law, mean = chances(shares), shares.mean()
    hits = np.arange(len(shares))
    ends = np.array([way(hits < number, 1, 0.95) for number in range(len(law))])
    return float(max(law[mean > ends[:, 1]].sum(), law[mean < ends[:, 0]].sum()))


def records():
    """Return shares of records: mixed, and all at one end but a few."""
    rng = np.random.default_rng(1)
    mixed = [rng.beta(0.3, 0.3, 30) for _ in range(40)]
    ends = [np.r_[np.ones(30 - k), np.full(k, p)] for k in (1, 3) for p in (0.5, 0.97)]
    return [*mixed, *ends, *(1 - each for each in ends)]


def test_average_of_fixed_records_covers():
    """Records of unequal shares: each side is missed with at most .025."""
    assert (
        max(worst_side(mean_share_interval, shares) for shares in records())
        <= 0.025 + 1e-12
    )


def test_average_next_to_one_needs_its_last_step():
    """One record of 30 that is wrong in .02515: pooled draws miss too often."""
    shares = np.r_[np.ones(29), 1 - 0.02515]
    assert worst_side(pooled, shares) > 0.025
    assert worst_side(mean_share_interval, shares) <= 0.025
    assert worst_side(mean_share_interval, 1 - shares) <= 0.025


def test_average_of_one_record_is_its_interval():
    """One record is no average."""
    low, high = binomial_interval(30, 50, 0.9)
    assert mean_share_interval([30], 50, 0.9) == (float(low), float(high))


@pytest.mark.parametrize(("hits", "draws"), [(3, 2), (-1, 2), (0, 0)])
def test_impossible_counts_are_refused(hits, draws):
    """Hits beyond the draws are a mistake."""
    with pytest.raises(UserError, match="Hits lie between"):
        binomial_interval(hits, draws, 0.95)


Draw = Callable[[np.random.Generator, int], Array]
POPULATIONS: dict[str, tuple[float, Draw]] = {
    "rarely wrong": (0.98, lambda rng, n: (rng.random(n) < 0.98) * 1.0),
    "coins": (0.5, lambda rng, n: (rng.random(n) < 0.5) * 1.0),
    "spread": (0.7, lambda rng, n: rng.beta(2.1, 0.9, n)),
    "alike": (0.8, lambda rng, n: rng.uniform(0.78, 0.82, n)),
}


def bell_of_means(low, _, confidence):
    """The broken twin: the normal interval."""
    half = norm.ppf((1 + confidence) / 2) * low.std(ddof=1) / np.sqrt(len(low))
    return low.mean() - half, low.mean() + half


def covers(way, name, n):
    """Return how often 300 samples' intervals hold the mean."""
    truth, draw = POPULATIONS[name]
    rng = np.random.default_rng(n)
    samples = (draw(rng, n) for _ in range(300))
    ends = [way(values, values, 0.95) for values in samples]
    return float(np.mean([low <= truth <= high for low, high in ends]))


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("n", [15, 150])
def test_interval_covers(name, n):
    """Small samples, too: 95 % less what 300 samples may vary."""
    assert covers(population_mean_interval, name, n) >= 0.95 - 2.5 * np.sqrt(
        0.05 * 0.95 / 300
    )


def test_normal_interval_of_means_is_caught():
    """Of records that are rarely wrong a small sample has none."""
    assert covers(bell_of_means, "rarely wrong", 15) < 0.5


def test_interval_is_narrower_than_bernsteins():
    """A hundred records: half as wide as by Maurer & Pontil (2009), theorem 4."""
    values = np.random.default_rng(3).beta(2.1, 0.9, 100)
    low, high = population_mean_interval(values, values, 0.95)
    log = np.log(4 / 0.05)
    reach = np.sqrt(2 * values.var(ddof=1) * log / 100) + 7 * log / (3 * 99)
    assert high - low < reach
    assert low < values.mean() < high


def test_brackets_widen_it():
    """Each end is that of the values' own end."""
    values = np.random.default_rng(4).beta(2.1, 0.9, 100)
    low, high = population_mean_interval(values, values, 0.95)
    wide = population_mean_interval(
        values - values / 10, values + (1 - values) / 10, 0.95
    )
    assert wide[0] < low < high < wide[1]


@pytest.mark.parametrize("values", [[], [0.5, 1.2], [[0.5]], [float("nan")]])
def test_values_that_are_no_shares_are_refused(values):
    """One share for each record."""
    with pytest.raises(UserError, match="values"):
        population_mean_interval(values, values, 0.95)


PairedWay = Callable[[np.ndarray, np.ndarray, int, float], Interval]
DRAWS = 40
RATES = [(0.0, 0.0), (0.01, 0.0), (0.02, 0.05), (0.3, 0.05), (0.5, 0.5), (0.0, 0.97)]


def bell_of_differences(more, less, draws, confidence):
    """The broken twin: the normal interval of the differences."""
    mean = (more - less) / draws
    half = norm.ppf((1 + confidence) / 2)
    half = half * np.sqrt(((more + less) / draws - mean**2) / draws)
    return mean - half, mean + half


def least_cover(way, confidence=0.95):
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
def test_interval_covers_at_all_rates(confidence):
    """Also where differences are rare, or all one way."""
    assert least_cover(intervals.paired_interval, confidence) >= confidence - 1e-9


def test_normal_interval_of_differences_is_caught():
    """Where differences are rare, none is seen, and it is certain of nothing there."""
    assert least_cover(bell_of_differences) < 0.5


def test_rare_differences_need_fewer_draws():
    """Two that differ in 4 % of draws: narrower than twice as many draws of one."""
    low, high = intervals.paired_interval(20, 20, 1000, 0.95)
    alone = np.subtract(*intervals.binomial_interval(1400, 2000, 0.95)[::-1])
    assert high - low < 0.9 * alone
    assert low < 0 < high
