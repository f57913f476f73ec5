"""A population's mean from a sample of records covers whatever the population."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from curvote.base.errors import UserError
from curvote.systems.utility.method.intervals import population_mean_interval

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]
POPULATIONS: dict[str, tuple[float, Draw]] = {
    "rarely wrong": (0.98, lambda rng, n: (rng.random(n) < 0.98) * 1.0),
    "coins": (0.5, lambda rng, n: (rng.random(n) < 0.5) * 1.0),
    "spread": (0.7, lambda rng, n: rng.beta(2.1, 0.9, n)),
    "alike": (0.8, lambda rng, n: rng.uniform(0.78, 0.82, n)),
}


def bell(low: Array, _: Array, confidence: float) -> tuple[float, float]:
    """The broken twin: the normal interval."""
    half = norm.ppf((1 + confidence) / 2) * low.std(ddof=1) / np.sqrt(len(low))
    return low.mean() - half, low.mean() + half


def covers(way: Callable[..., tuple[float, float]], name: str, n: int) -> float:
    """Return how often 300 samples' intervals hold the mean."""
    truth, draw = POPULATIONS[name]
    rng = np.random.default_rng(n)
    samples = (draw(rng, n) for _ in range(300))
    ends = [way(values, values, 0.95) for values in samples]
    return float(np.mean([low <= truth <= high for low, high in ends]))


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("n", [15, 150])
def test_interval_covers(name: str, n: int) -> None:
    """Small samples, too: 95 % less what 300 samples may vary."""
    assert covers(population_mean_interval, name, n) >= 0.95 - 2.5 * np.sqrt(
        0.05 * 0.95 / 300
    )


def test_normal_interval_is_caught() -> None:
    """Of records that are rarely wrong a small sample has none."""
    assert covers(bell, "rarely wrong", 15) < 0.5


def test_interval_is_narrower_than_bernsteins() -> None:
    """A hundred records: half as wide as by Maurer & Pontil (2009), theorem 4."""
    values = np.random.default_rng(3).beta(2.1, 0.9, 100)
    low, high = population_mean_interval(values, values, 0.95)
    log = np.log(4 / 0.05)
    reach = np.sqrt(2 * values.var(ddof=1) * log / 100) + 7 * log / (3 * 99)
    assert high - low < reach
    assert low < values.mean() < high


def test_brackets_widen_it() -> None:
    """Each end is that of the values' own end."""
    values = np.random.default_rng(4).beta(2.1, 0.9, 100)
    low, high = population_mean_interval(values, values, 0.95)
    wide = population_mean_interval(
        values - values / 10, values + (1 - values) / 10, 0.95
    )
    assert wide[0] < low < high < wide[1]


@pytest.mark.parametrize("values", [[], [0.5, 1.2], [[0.5]], [float("nan")]])
def test_values_that_are_no_shares_are_refused(values: list[float]) -> None:
    """One share for each record."""
    with pytest.raises(UserError, match="values"):
        population_mean_interval(values, values, 0.95)
