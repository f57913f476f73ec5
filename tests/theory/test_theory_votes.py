"""Votes: what is said of a utility's variance and of reversal is true of real votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from curvote.advise import mrma
from curvote.base.entropy import SeededEntropy
from curvote.client.report import draw_votes
from curvote.learning.votes import estimate_utility, reversal_mask
from tests.server.test_aggregation import utility_variance

accuracies = st.floats(0, 1)
counts = st.integers(1, 400)
levels = st.floats(0.05, 8)


def cast(r: float, n: int, epsilon: float, runs: int) -> np.ndarray:
    """Return how many of ``n`` clients say "right", for each of ``runs``."""
    rng = np.random.default_rng(1)
    decision = np.where(rng.random(runs * n) < r, 1.0, -1.0)
    said = draw_votes(decision, np.ones(runs * n), epsilon, SeededEntropy(2))
    return said.reshape(runs, n).sum(axis=1)


@given(r=accuracies, n=counts, epsilon=levels)
def test_the_variance_is_largest_at_even_odds(r: float, n: int, epsilon: float) -> None:
    """There it is ((e^eps + 1)/(e^eps - 1))^2 / (4 n), and no accuracy has a larger."""
    q = mrma.keep_probability(epsilon)
    bound = 1 / (4 * n * np.tanh(epsilon / 2) ** 2)
    assert utility_variance(r, n, q) <= bound * (1 + 1e-12)
    assert utility_variance(0.5, n, q) == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("r", [0.3, 0.7])
@pytest.mark.parametrize("n", [49, 50])
def test_reversal_is_right_as_often_as_said(r: float, n: int) -> None:
    """With real votes and the real rule, ties included, for even and odd n."""
    runs, epsilon = 20_000, 0.5
    positive = cast(r, n, epsilon, runs)
    flipped = reversal_mask(positive, np.full(runs, n))
    keep = mrma.keep_probability(epsilon)
    kept = binom.sf(np.ceil(n / 2) - 1, n, keep * r + (1 - keep) * (1 - r))
    expected = kept if r > 0.5 else 1 - kept
    error = np.sqrt(expected * (1 - expected) / runs)
    assert abs((flipped == (r < 0.5)).mean() - expected) < 5 * error
    variance = estimate_utility(positive, np.full(runs, n), keep).value.var()
    exact = float(utility_variance(r, n, keep))
    assert variance == pytest.approx(exact, rel=5 * np.sqrt(2 / runs))
