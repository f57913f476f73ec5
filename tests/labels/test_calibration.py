"""Probabilities from votes, by codes that the votes do not know."""

from __future__ import annotations

import numpy as np
import pytest

from curvote.systems.labels.codes.encoding import encode
from curvote.systems.labels.learners import smoothing


def votes(n=500, classes=5, seed=0):
    """Return noisy votes, some of them below 0."""
    return np.random.default_rng(seed).normal(0.2, 0.4, (n, classes))


@pytest.mark.parametrize("exponent", [1, 3, 8])
def test_probabilities_are_a_law_that_keeps_the_order(exponent):
    """Rows sum to 1, no class is impossible, the largest vote stays the largest."""
    given = votes()
    proba = smoothing.probabilities(given, exponent)
    assert proba.sum(axis=1) == pytest.approx(1)
    assert (proba > 0).all()
    some = given.max(axis=1) > 0
    assert (proba.argmax(axis=1) == given.argmax(axis=1))[some].all()


def test_a_record_without_votes_is_uniform():
    """Where no vote is positive nothing is known."""
    assert smoothing.to_simplex(np.array([[-1.0, 0.0]])) == pytest.approx(0.5)
    assert smoothing.probabilities(np.zeros((1, 4)), 5) == pytest.approx(0.25)


@pytest.mark.parametrize("true", [1, 2, 4])
def test_the_exponent_is_found_from_codes(true):
    """Labels drawn by probabilities with a known exponent."""
    rng = np.random.default_rng(true)
    given = rng.dirichlet(np.full(5, 2.0), 20_000)
    proba = smoothing.probabilities(given, true)
    y = (proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1).clip(max=4)
    codes = encode(y, np.arange(5), 2.0, "subset", true)
    assert smoothing.best_exponent(given, codes.likelihood())[0] == true


def test_the_likelihood_is_that_of_the_mixture():
    """One row by hand: the mean over classes of the code's likelihood."""
    proba, likely = np.array([[0.2, 0.8]]), np.array([[1.0, 0.25]])
    found = smoothing.log_likelihood(proba, likely)
    assert found == pytest.approx(np.log(0.2 + 0.2))
    assert smoothing.posterior(proba, likely) == pytest.approx(0.5)
