"""Margin-based learners: logistic regression, support vectors and DWD, batched.

Newton's method (iteratively reweighted least squares) on standardised coordinates, so
that neither the units of the reports nor an ill-placed origin matter.
"""

from __future__ import annotations

import numpy as np

from curvote.server.learners.fits import BoolArray, Fits, FloatArray, has_one_class
from curvote.server.learners.newton import (
    BlockFit,
    fit_in_blocks,
    minimise,
    standardised_design,
)

LOGISTIC_RIDGE = 1e-3  # flagged problems minimise loss + RIDGE/2 |standardised coef|^2
LOGISTIC_ITERATIONS = 25  # as R's glm
RIDGE_ITERATIONS = 100
COLLINEAR = 1e-12  # smallest eigenvalue of the correlation matrix


def fit_logistic(reports: FloatArray, labels: FloatArray) -> Fits:
    """Return the maximum-likelihood fits to ``reports``, ``labels``.

    Flagged are problems without a unique maximum: separable (some iterate has every
    point on its right side), collinear, or not converged after 25 iterations; these
    get the ridge penalty RIDGE = 1e-3 on the coefficients in units of each
    coordinate's standard deviation, the intercept free. One class only: flagged, the
    constant classifier with coef 0 and intercept +1 or -1. This fit reproduces the
    tables of MRMA; scikit-learn's default penalty does not.
    """
    return fit_in_blocks(_fit_logistic_block, reports, labels, LOGISTIC_RIDGE)


def _fit_logistic_block(reports: FloatArray, labels: FloatArray) -> BlockFit:
    """Return coef, intercept and flags of a block of problems."""
    design = standardised_design(reports, labels)
    theta = np.zeros(design.signed.shape[:2])
    constant = has_one_class(labels)
    regular = ~constant & ~_is_collinear(design.signed)
    first = np.flatnonzero(regular)
    theta[first], regular[first] = _maximise_likelihood(design.signed[first], 0.0)
    again = ~regular & ~constant
    theta[again], _ = _maximise_likelihood(design.signed[again], LOGISTIC_RIDGE)
    return *design.classifier(theta, labels, constant), ~regular


def _maximise_likelihood(
    design: FloatArray, ridge: float
) -> tuple[FloatArray, BoolArray]:
    """Return the maxima of the penalised likelihood, and which converged."""
    penalty = np.full(design.shape[:2], ridge)
    penalty[:, 0] = 0
    free = ridge == 0
    iterations = LOGISTIC_ITERATIONS if free else RIDGE_ITERATIONS
    return minimise(
        _logistic_loss, design, penalty, iterations=iterations, until_separated=free
    )


def _logistic_loss(margin: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    small = np.exp(-np.abs(margin))  # never overflows; the sigmoid in either tail
    wrong = np.where(margin > 0, small, 1) / (1 + small)
    loss = np.log1p(small) + np.maximum(-margin, 0)
    return loss, wrong, small / (1 + small) ** 2


def _is_collinear(design: FloatArray) -> BoolArray:
    """Return which problems have collinear coordinates."""
    slopes = design[:, 1:]
    correlation = slopes @ slopes.swapaxes(1, 2) / slopes.shape[2]
    return np.asarray(np.linalg.eigvalsh(correlation)[:, 0] < COLLINEAR)
