"""Votes: what is said of a utility's variance is true of real votes."""

from __future__ import annotations

import numpy as np
import pytest

from curvote.advise import mrma
from curvote.base.entropy import SeededEntropy
from curvote.client.report import draw_votes
from curvote.learning.votes import estimate_utility, utility_variance


def cast(r: float, n: int, epsilon: float, runs: int) -> np.ndarray:
    """Return how many of ``n`` clients say "right", for each of ``runs``."""
    rng = np.random.default_rng(1)
    decision = np.where(rng.random(runs * n) < r, 1.0, -1.0)
    said = draw_votes(decision, np.ones(runs * n), epsilon, SeededEntropy(2))
    return said.reshape(runs, n).sum(axis=1)


@pytest.mark.parametrize("r", [0.3, 0.7])
@pytest.mark.parametrize("n", [49, 50])
def test_the_variance_is_that_of_real_votes(r: float, n: int) -> None:
    """With real votes, for even and odd n."""
    runs, epsilon = 20_000, 0.5
    positive = cast(r, n, epsilon, runs)
    keep = mrma.keep_probability(epsilon)
    variance = estimate_utility(positive, np.full(runs, n), keep).value.var()
    exact = float(utility_variance(r, n, keep))
    assert variance == pytest.approx(exact, rel=5 * np.sqrt(2 / runs))
