"""Logistic regression without penalty, for a whole batch of problems at once.

Newton's method (iteratively reweighted least squares) on standardised coordinates, so
that neither the units of the reports nor an ill-placed origin matter.
"""

from __future__ import annotations

import numpy as np

from curvote.server.learners.fits import BoolArray, Fits, FloatArray, one_class
from curvote.server.learners.newton import Part, in_blocks, minimise, standardised

RIDGE = 1e-3  # flagged problems minimise loss + RIDGE/2 |standardised coef|^2
ITERATIONS = 25  # as R's glm
RIDGE_ITERATIONS = 100
COLLINEAR = 1e-12  # smallest eigenvalue of the correlation matrix


def fit(reports: FloatArray, labels: FloatArray) -> Fits:
    """Return the maximum-likelihood fits to ``reports`` [B, n, d], ``labels`` [B, n].

    Flagged are problems without a unique maximum: separable (some iterate has every
    point on its right side), collinear, or not converged after 25 iterations; these
    get the ridge penalty RIDGE = 1e-3 on the coefficients in units of each
    coordinate's standard deviation, the intercept free. One class only: flagged, the
    constant classifier with coef 0 and intercept +1 or -1. This fit reproduces the
    tables of MRMA; scikit-learn's default penalty does not.
    """
    return in_blocks(_fit_block, reports, labels, RIDGE)


def _fit_block(reports: FloatArray, labels: FloatArray) -> Part:
    """Return coef, intercept and flagged of some of the problems."""
    design = standardised(reports, labels)
    theta = np.zeros(design.signed.shape[:2])
    constant = one_class(labels)
    regular = ~constant & ~_collinear(design.signed)
    first = np.flatnonzero(regular)
    theta[first], regular[first] = _maximise(design.signed[first], 0.0)
    again = ~regular & ~constant
    theta[again], _ = _maximise(design.signed[again], RIDGE)
    return *design.classifier(theta, labels, constant), ~regular


def _maximise(design: FloatArray, ridge: float) -> tuple[FloatArray, BoolArray]:
    """Return the maxima of the likelihood less ``ridge``/2 |coef|^2, and which are."""
    penalty = np.full(design.shape[:2], ridge)
    penalty[:, 0] = 0
    free = ridge == 0
    iterations = ITERATIONS if free else RIDGE_ITERATIONS
    return minimise(_loss, design, penalty, iterations=iterations, until_separated=free)


def _loss(margin: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    small = np.exp(-np.abs(margin))  # never overflows; the sigmoid in either tail
    wrong = np.where(margin > 0, small, 1) / (1 + small)
    loss = np.log1p(small) + np.maximum(-margin, 0)
    return loss, wrong, small / (1 + small) ** 2


def _collinear(design: FloatArray) -> BoolArray:
    """Return which problems have coordinates that depend on each other, or too many."""
    slopes = design[:, 1:]
    correlation = slopes @ slopes.swapaxes(1, 2) / slopes.shape[2]
    return np.asarray(np.linalg.eigvalsh(correlation)[:, 0] < COLLINEAR)
