"""Batches of reports to fit, and what the tests of the learners compare."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from curvote.learning import learners
from curvote.learning.learners.registry import Fits

FloatArray = NDArray[np.float64]
Batch = tuple[FloatArray, FloatArray]

RIDGE = "sklearn:linear_model.RidgeClassifier"

every_learner = pytest.mark.parametrize("name", [*learners.names(), RIDGE])


def noisy(seed: int, batch: int, n: int, d: int) -> Batch:
    """Return reports and labels of a logistic model with Laplace noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(batch, n, d))
    chance = 1 / (1 + np.exp(-x @ np.linspace(2, -1, d)))
    labels = np.where(rng.random((batch, n)) < chance, 1.0, -1.0)
    return x + rng.laplace(scale=0.5, size=x.shape), labels


def random_gram(seed: int, d: int) -> FloatArray:
    """Return a positive definite matrix, far from the identity."""
    root = np.random.default_rng(seed).normal(size=(2 * d, d))
    return np.asarray(root.T @ root)


def taking(name: str, **options: Any) -> dict[str, Any]:
    """Return those of the options that the learner takes."""
    known = learners.parameters(name)
    return {key: value for key, value in options.items() if key in known}


def in_units(name: str, unit: float) -> dict[str, Any]:
    """Return the options that mean the same for reports in units of 1/``unit``."""
    return taking(
        name, C=unit**-2, penalty=0.01 * unit**2, alpha=unit**2 if name == RIDGE else 0
    )


def scores(fits: Fits, x: FloatArray) -> FloatArray:
    """Return each classifier's scores of its own problem's reports."""
    return np.asarray((x @ fits.coef[:, :, None])[:, :, 0] + fits.intercept[:, None])


def assert_same(found: Fits, expected: Fits, rtol: float = 1e-9) -> None:
    """Fail unless both hold the same flags and, up to rounding, coefficients."""
    np.testing.assert_array_equal(found.flagged, expected.flagged)
    np.testing.assert_allclose(found.coef, expected.coef, rtol, 1e-12)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol, 1e-12)
