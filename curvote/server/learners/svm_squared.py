"""Linear support vector machine with the squared hinge loss, batched.

Newton's method on the primal: Keerthi and DeCoste (2005), "A modified finite Newton
method for fast solution of large scale linear SVMs".
"""

from __future__ import annotations

import numpy as np

from curvote import validate
from curvote.server.learners.fits import BoolArray, Fits, FloatArray, has_one_class
from curvote.server.learners.newton import (
    BlockFit,
    fit_in_blocks,
    minimise,
    standardised_design,
)

SQUARED_ITERATIONS = 40
EASING = 4.0 ** np.arange(15, -1, -1)  # of a penalty under which Newton is lost
SQUARED_MAX_HARDNESS = (
    1e10  # C in units of 1/scale^2; above, rounding errors would decide
)
SQUARED_MIN_HARDNESS = 1e-100  # below, the penalty would overflow


def fit_svm_squared(reports: FloatArray, labels: FloatArray, *, C: float = 1.0) -> Fits:
    """Return the minimisers of |w|^2/2 + C sum_i max(0, 1 - y_i f(x_i))^2.

    ``reports`` [B, n, d] holds the x, ``labels`` [B, n] the y; ``C`` > 0; b is not
    penalised. A ``C`` above 1e10/scale^2, scale the largest distance from the mean,
    counts as that.

    Flagged: one class, or reports that are all the same (coef 0, intercept the
    majority's label), and what has not converged in the end.
    """
    C = validate.positive(C=C)
    return fit_in_blocks(lambda x, y: _fit_squared_block(x, y, C), reports, labels)


def _fit_squared_block(reports: FloatArray, labels: FloatArray, C: float) -> BlockFit:
    design = standardised_design(reports, labels, jointly=True)
    scale = design.scale[:, 0]
    constant = has_one_class(labels) | ~np.isfinite(scale)
    theta, regular = np.zeros(design.signed.shape[:2]), ~constant
    going = np.flatnonzero(regular)
    with np.errstate(over="ignore", under="ignore"):
        hardness = np.clip(
            C * scale[going] ** 2, SQUARED_MIN_HARDNESS, SQUARED_MAX_HARDNESS
        )
    penalty = np.zeros((len(going), design.signed.shape[1]))
    penalty[:, 1:] = 1 / hardness[:, None]
    theta[going], regular[going] = _minimise_squared(design.signed[going], penalty)
    return *design.classifier(theta, labels, constant), ~regular


def _minimise_squared(
    design: FloatArray, penalty: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return the minima [B, p], and which were found.

    Where Newton's method from 0 is lost, as where few reports leave many directions
    open, it comes from a larger penalty in steps.
    """
    theta, converged = minimise(
        _squared_hinge_loss, design, penalty, iterations=SQUARED_ITERATIONS
    )
    lost = np.flatnonzero(~converged)
    if lost.size:
        near = np.zeros_like(theta[lost])
        for firmer in EASING:
            near, converged[lost] = minimise(
                _squared_hinge_loss,
                design[lost],
                penalty[lost] * firmer,
                iterations=SQUARED_ITERATIONS,
                start=near,
            )
        theta[lost] = near
    return theta, converged


def _squared_hinge_loss(
    margin: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    short = np.maximum(1 - margin, 0)
    return short**2, 2 * short, np.where(short > 0, 2.0, 0.0)
