"""Maximum likelihood of the codes: its gradient, its maximum, its limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression

from curvote.base.errors import UserError
from curvote.systems.labels.codes.encoding import encode
from curvote.systems.labels.learners.spectral import (
    LikelihoodVotes,
    penalised_objective,
)
from tests.labels.learners.worlds import circle, coded

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("encoder", ["subset", "rr", "vector"])
def test_the_gradient_is_that_of_finite_differences(encoder):
    """At random coefficients, with and without much of a penalty."""
    X, _, codes = coded(50, encoder=encoder)
    basis = np.column_stack([np.ones(50), X])
    start = np.random.default_rng(3).normal(size=(3, 4))

    for ridge in (0.1, 20.0):

        def value(flat, ridge=ridge):
            return penalised_objective(
                flat.reshape(3, 4), basis, codes.likelihood(), ridge
            )[0]

        def slope(flat, ridge=ridge):
            made = penalised_objective(
                flat.reshape(3, 4), basis, codes.likelihood(), ridge
            )
            return made[1].ravel()

        assert check_grad(value, slope, start.ravel()) < 1e-6


def test_without_noise_it_is_logistic_regression():
    """At a huge epsilon the code is the label."""
    X, y = circle(300, 3)
    codes = encode(y, [0, 1, 2], 40.0, "rr", 0)
    learner = LikelihoodVotes(ridge=5.0, columns="features").fit(X, codes, RNG)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    plain = LogisticRegression(C=1 / 5, tol=1e-10).fit(scaled, y)
    assert learner.votes(X) == pytest.approx(plain.predict_proba(scaled), abs=2e-3)


@pytest.mark.parametrize("columns", ["graph", "features"])
def test_it_learns(columns):
    """Nearly all of a clear world, with a ridge that codes chose."""
    X, y, codes = coded(600)
    learner = LikelihoodVotes(columns=columns).fit(X, codes, RNG)
    votes = learner.votes(X)
    assert votes.sum(axis=1) == pytest.approx(1)
    assert (votes.argmax(axis=1) == y).mean() > 0.95
    assert learner.fixed().ridge == learner.chosen_["ridge"]


def test_a_ridge_is_above_0():
    """Ridge 0 has no maximum where classes can be parted."""
    X, _, codes = coded(60)
    with pytest.raises(UserError, match="ridge is 0"):
        LikelihoodVotes(ridge=0.0).fit(X, codes, RNG)
