"""Logistic regression: the maximum of the likelihood, or a flag."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from curvote.learning import learners
from curvote.learning.learners import discriminants, margins
from tests.problems import noisy, scores


def test_logistic_is_the_unpenalised_maximum_likelihood_fit() -> None:
    """On 300 problems the coefficients are scikit-learn's without penalty, to 1e-6."""
    x, y = noisy(6, 300, 50, 4)
    fits = learners.fit("logistic", x, y)
    regular = np.flatnonzero(~fits.flagged)
    assert regular.size > 250
    for b in regular:
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
        model.fit(x[b], y[b])
        np.testing.assert_allclose(fits.coef[b], model.coef_[0], 1e-6, 1e-6)
        np.testing.assert_allclose(fits.intercept[b], model.intercept_[0], 1e-6, 1e-6)


def test_logistic_fits_long_problems() -> None:
    """At the optimum of 25 problems of 3,000 reports the gradient is zero."""
    x, y = noisy(7, 25, 3_000, 4)
    fits = learners.fit("logistic", x, y)
    residual = y / (1 + np.exp(y * scores(fits, x)))
    gradient = (residual[:, None, :] @ x)[:, 0]
    assert not fits.flagged.any()
    np.testing.assert_allclose(gradient, 0, atol=1e-8)
    np.testing.assert_allclose(residual.sum(axis=1), 0, atol=1e-8)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), gap=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]))
def test_separable_problems_are_flagged_and_solved(seed: int, gap: float) -> None:
    """Separable reports are flagged, whatever the gap; a wide gap is separated."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    x = rng.normal(size=(1, 12, 3))
    side = np.where(x @ direction > 0, 1.0, -1.0)
    assume(abs(side.sum()) < 12)
    x += gap * side[:, :, None] * direction
    fits = learners.fit("logistic", x, side)
    assert fits.flagged[0]
    assert fits.ridge == margins.LOGISTIC_RIDGE
    if gap >= 1:
        assert (side * (x @ fits.coef[0] + fits.intercept[0]) > 0).all()


@pytest.mark.parametrize(
    ("points", "labels", "flagged"),
    [
        ([0, 1, 2, 3], [-1, -1, 1, 1], True),  # separable
        ([0, 1, 1, 2], [-1, -1, 1, 1], True),  # separable but for a tie
        ([0, 1, 1, 2], [-1, 1, -1, 1], True),  # the same tie, in another order
        ([0, 2, 1, 3], [-1, -1, 1, 1], False),  # overlapping
        ([5, 5, 5, 5], [-1, 1, 1, 1], True),  # no coordinate that varies
    ],
)
def test_exactly_the_problems_without_a_maximum_are_flagged(
    points: list[int], labels: list[int], flagged: bool
) -> None:
    """A finite maximum of the likelihood exists only where the classes overlap."""
    x = np.array(points, dtype=float)[None, :, None]
    assert learners.fit("logistic", x, [labels]).flagged.tolist() == [flagged]


@pytest.mark.parametrize(
    ("name", "ridge", "seed"),
    [("logistic", margins.LOGISTIC_RIDGE, 8), ("lda", discriminants.LDA_RIDGE, 32)],
)
def test_collinear_coordinates_are_flagged_and_share_the_slope(
    name: str, ridge: float, seed: int
) -> None:
    """A repeated coordinate cannot crash the solver: the ridge splits the slope.

    Nor can more coordinates than reports.
    """
    x, y = noisy(seed, 5, 60, 3)
    x[:, :, 2] = x[:, :, 1]
    fits = learners.fit(name, x, y)
    single = learners.fit(name, x[:, :, :2], y)
    assert fits.flagged.all()
    assert fits.ridge == ridge
    np.testing.assert_allclose(fits.coef[:, 1], fits.coef[:, 2], rtol=1e-6)
    np.testing.assert_allclose(2 * fits.coef[:, 1], single.coef[:, 1], rtol=1e-2)
    assert learners.fit(name, *noisy(33, 2, 10, 40)).flagged.all()


def test_full_newton_steps_that_overshoot_are_tamed() -> None:
    """Outliers that make plain Newton diverge still end at the maximum."""
    rng = np.random.default_rng(9)
    x = rng.standard_t(0.5, size=(1_000, 50, 4)).clip(-1e6, 1e6)
    y = np.where(rng.random((1_000, 50)) < 0.5, 1.0, -1.0)
    fits = learners.fit("logistic", x, y)
    with np.errstate(over="ignore"):
        gradient = ((y / (1 + np.exp(y * scores(fits, x))))[:, None, :] @ x)[:, 0]
    reach = np.abs(x).sum(axis=1)
    assert not fits.flagged.any()
    assert (np.abs(gradient) <= 1e-8 * reach).all()
