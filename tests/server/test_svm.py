"""Support vector machines: the optimum of their objective, whatever the noise."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.svm import SVC

from curvote.base.errors import UserError
from curvote.learning import learners
from tests.problems import Batch, FloatArray, noisy, scores

SQUARED = "svm_squared"


def drowned(seed: int, batch: int, n: int, d: int, scale: float) -> Batch:
    """Return reports under Laplace noise of ``scale``, labels almost random."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, size=(batch, n, d))
    labels = np.where(rng.random((batch, n)) < 0.5 + 0.1 * z[:, :, 0], 1.0, -1.0)
    return z + rng.laplace(scale=scale, size=z.shape), labels


def violation(
    x: FloatArray, y: FloatArray, coef: FloatArray, intercept: float, C: float
) -> float:
    """Return how far the conditions of Karush, Kuhn and Tucker are from being met.

    Some multipliers in [0, 1] of the reports on the margin must balance those short of
    it, whose multiplier is 1: sum_i a_i y_i (x_i, 1) = (w/C, 0); x in units of 1.
    """
    margin = y * (x @ coef + intercept)
    signed = y[:, None] * np.column_stack([x / np.abs(x).max(), np.ones(len(x))])
    short, at = margin < 1 - 1e-5, np.abs(margin - 1) <= 1e-5
    needed = np.append(coef / C / np.abs(x).max(), 0) - signed[short].sum(axis=0)
    if not at.any():
        return float(np.abs(needed).max())
    best = lsq_linear(signed[at].T, needed, bounds=(0, 1), method="bvls")
    return float(np.abs(best.fun).max())


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
@pytest.mark.parametrize(("n", "d"), [(50, 4), (300, 3), (40, 60)])
def test_svm_scores_as_scikit_learn_does(n: int, d: int, C: float) -> None:
    """At a tight tolerance of libsvm the decision functions agree to 1e-4."""
    x, y = noisy(20, 5, n, d)
    fits = learners.fit("svm", x, y, C=C)
    assert not fits.flagged.any()
    for b in range(len(x)):
        model = SVC(kernel="linear", C=C, tol=1e-8).fit(x[b], y[b])
        expected = model.decision_function(x[b])
        np.testing.assert_allclose(scores(fits, x)[b], expected, atol=1e-4)


@pytest.mark.parametrize("scale", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize(("n", "d"), [(50, 3), (50, 10), (40, 50), (2_000, 4)])
def test_svm_is_optimal_under_heavy_noise(n: int, d: int, scale: float) -> None:
    """Where libsvm would run for hours, multipliers still prove the optimum."""
    x, y = drowned(21, 5, n, d, scale)
    for C in (1e-6, 1.0):
        fits = learners.fit("svm", x, y, C=C)
        assert not fits.flagged.any()
        for b in range(len(x)):
            coef, intercept = fits.coef[b], fits.intercept[b]
            assert violation(x[b], y[b], coef, intercept, C) < 1e-5 * n


def test_svm_converges_on_many_problems() -> None:
    """Of 20,000 noisy problems none is left unsolved."""
    x, y = drowned(22, 20_000, 30, 4, 1.0)
    assert not learners.fit("svm", x, y).flagged.any()


@pytest.mark.parametrize(
    ("points", "labels", "slope", "intercept"),
    [
        ([-1, 1], [-1, 1], 1, 0),
        ([0, 0, 1, 1], [-1, 1, -1, 1], 0, 0),  # every b in [-1, 1] is optimal
        ([0, 1, 2, 4], [-1, -1, 1, 1], 2, -3),  # the widest gap, between 1 and 2
    ],
)
def test_svm_returns_the_middle_of_the_optimal_intercepts(
    points: list[float], labels: list[float], slope: float, intercept: float
) -> None:
    """Worked by hand; where an interval of intercepts is optimal, its middle."""
    x = np.array(points, dtype=float)[None, :, None]
    fits = learners.fit("svm", x, [labels], C=10.0)
    np.testing.assert_allclose(fits.coef[0, 0], slope, atol=1e-6)
    np.testing.assert_allclose(fits.intercept[0], intercept, atol=1e-6)


@pytest.mark.parametrize("power", [-150, -20, 20, 150])
@pytest.mark.parametrize("name", ["svm", SQUARED])
def test_tiny_and_huge_units_are_no_obstacle(name: str, power: int) -> None:
    """Reports in units of 2^-power, with C to match, get the same scores."""
    x, y = noisy(23, 10, 30, 3)
    context = learners.fit(name, x, y)
    there = learners.fit(name, x * 2.0**power, y, C=4.0**-power)
    found, expected = scores(there, x * 2.0**power), scores(context, x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("C", [1e-12, 1e-9, 1e-4])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_small_penalties_give_proportional_slopes(C: float, share: float) -> None:
    """While no margin depends on C, w is proportional to it, as at C = 1e-6."""
    x, _ = noisy(24, 10, 30, 3)
    y = np.tile(np.where(np.arange(30) < 30 * share, 1.0, -1.0), (10, 1))
    one = learners.fit("svm", x, y, C=1e-6).coef / 1e-6
    found = learners.fit("svm", x, y, C=C).coef / C
    np.testing.assert_allclose(found, one, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("scale", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_the_gradient_of_the_squared_hinge_is_zero(scale: float, C: float) -> None:
    """It is convex and differentiable: a zero gradient is its minimum."""
    for n, d in ((50, 4), (40, 50), (1_000, 4)):
        x, y = drowned(25, 20, n, d, scale)
        fits = learners.fit(SQUARED, x, y, C=C)
        assert not fits.flagged.any()
        pull = 2 * C * y * np.maximum(1 - y * scores(fits, x), 0)
        gradient = fits.coef - (pull[:, None, :] @ x)[:, 0]
        reach = 1e-8 * (np.abs(pull) @ np.abs(x).max(axis=2).T + C).max()
        np.testing.assert_allclose(gradient, 0, atol=reach)
        np.testing.assert_allclose(pull.sum(axis=1), 0, atol=1e-8 * C * n)


@pytest.mark.parametrize("name", ["svm", SQUARED])
def test_reports_without_spread_get_the_majority(name: str) -> None:
    """All reports the same: flagged, coef 0, the commoner label."""
    fits = learners.fit(name, np.full((1, 5, 2), 7.0), [[1, -1, 1, -1, 1]])
    assert fits.flagged.all()
    assert not fits.coef.any()
    assert fits.intercept[0] == 1


@pytest.mark.parametrize("name", ["svm", SQUARED])
@pytest.mark.parametrize("params", [{"C": 0}, {"C": -1}, {"C": np.inf}, {"c": 1}])
def test_wrong_parameters_are_refused(name: str, params: dict[str, Any]) -> None:
    """C is a finite number above 0."""
    with pytest.raises(UserError, match=r"C is|takes no parameter"):
        learners.fit(name, *noisy(26, 1, 10, 2), **params)
