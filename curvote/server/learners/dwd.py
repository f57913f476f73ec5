"""Distance-weighted discrimination of curves, with a roughness penalty, batched.

Sang, Kashlak and Kong (2022), "A reproducing kernel Hilbert space framework for
functional classification": the loss of distance-weighted discrimination, V(u) = 1 - u
up to u = 1/2 and 1/(4u) above (Wang and Zou 2018, "Another look at distance-weighted
discrimination", q = 1), and a penalty on how much the slope function bends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError
from curvote.server.learners import fits, newton
from curvote.server.learners.fits import BoolArray, Fits, FloatArray

DWD_RIDGE = 1e-6  # flagged problems add RIDGE/2 |scaled coef|^2 to the mean loss
DWD_ITERATIONS = 100
MAX_CURVATURE = 4.0  # curvature of V nowhere exceeds it, so such a step always descends
MAX_PENALTY = 1e150  # penalties above would overflow; their coefficients are 0 by then
FLAT_EIGENVALUE = (
    1e-12  # eigenvalues below this part of the largest are rounding errors
)


def fit_dwd(
    reports: FloatArray,
    labels: FloatArray,
    *,
    gram: ArrayLike | None = None,
    roughness: ArrayLike | None = None,
    penalty: float = 0.01,
) -> Fits:
    """Return the minimisers of mean_i V(y_i (a + b . z_i)) + ``penalty`` J(b).

    ``reports`` [B, n, d] holds the z, ``labels`` [B, n] the y; coef is b, intercept a.
    ``roughness`` R [d, d] makes the reports coefficients of curves: with ``gram`` G
    [d, d] (symmetric, positive definite; default identity), R_ij = integral of
    phi_i'' phi_j'', the slope function is beta = sum_k c_k phi_k, b = G c, and
    J = c'Rc = integral of beta''^2. Without it J = |b|^2: ordinary linear
    distance-weighted discrimination. ``penalty`` > 0.

    Flagged: one class, or reports that are all the same (coef 0, intercept the
    majority's label), and no minimum within 100 steps, as where a slope function that
    costs nothing separates the classes: RIDGE/2 |coef|^2 is added, in units of the
    largest distance from the mean. Where a minimum is not unique, which takes classes
    of equal size and margins below 1/2, it is the one that Newton's method finds
    from 0.
    """
    weights, axes = _roughness_axes(reports.shape[2], gram, roughness)
    weights = weights * validate.positive(penalty=penalty)
    return newton.fit_in_blocks(
        lambda x, y: _fit_dwd_block(x, y, weights, axes), reports, labels, DWD_RIDGE
    )


def _roughness_axes(
    d: int, gram: ArrayLike | None, roughness: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return weights k [d] and axes U [d, d] of the roughness penalty."""
    if roughness is None:
        return np.ones(d), np.eye(d)
    inverse = np.linalg.inv(np.eye(d) if gram is None else fits.check_gram(gram, d))
    rough = validate.finite(roughness=roughness)
    if rough.shape != (d, d) or not np.allclose(rough, rough.T, atol=0):
        raise UserError(
            f"roughness has shape {rough.shape}; it must be symmetric, ({d}, {d})."
        )
    values, vectors = np.linalg.eigh(inverse @ rough @ inverse)
    if values[0] < -1e-6 * values[-1]:
        raise UserError(
            "roughness has negative eigenvalues; no integral of squares has."
        )
    return np.where(values > FLAT_EIGENVALUE * values[-1], values, 0.0), vectors


def _fit_dwd_block(
    reports: FloatArray, labels: FloatArray, weights: FloatArray, axes: FloatArray
) -> newton.BlockFit:
    design, penalty, stretch = _penalised_design(reports, labels, weights, axes)
    constant = fits.has_one_class(labels) | ~np.isfinite(design.scale[:, 0])
    theta, regular = np.zeros(design.signed.shape[:2]), ~constant
    first = np.flatnonzero(regular)
    theta[first], regular[first] = _minimise_dwd(design.signed[first], penalty[first])
    again = ~regular & ~constant
    ridge = DWD_RIDGE * labels.shape[1] / stretch[again] ** 2
    penalty[again, 1:] += ridge
    theta[again], _ = _minimise_dwd(design.signed[again], penalty[again])
    theta[:, 1:] = ((theta[:, 1:] / stretch)[:, None, :] @ axes.T)[:, 0]
    return *design.classifier(theta, labels, constant), ~regular


def _penalised_design(
    reports: FloatArray, labels: FloatArray, weights: FloatArray, axes: FloatArray
) -> tuple[newton.Design, FloatArray, FloatArray]:
    """Return the design along ``axes``, its penalty and its stretch.

    Each axis is stretched as much as it is penalised, which keeps Hessians well
    conditioned whatever the roughness of its function.
    """
    n = labels.shape[1]
    design = newton.standardised_design(reports, labels, jointly=True)
    with np.errstate(over="ignore", under="ignore"):
        weights = np.minimum(2 * weights / design.scale**2, MAX_PENALTY)
    stretch = np.sqrt(1 + weights)
    signed = design.signed
    signed[:, 1:] = axes.T @ signed[:, 1:] / stretch[:, :, None]
    penalty = np.zeros(signed.shape[:2])
    penalty[:, 1:] = n * weights / (1 + weights)
    return design, penalty, stretch


def _minimise_dwd(
    design: FloatArray, penalty: FloatArray
) -> tuple[FloatArray, BoolArray]:
    return newton.minimise(
        _dwd_loss, design, penalty, iterations=DWD_ITERATIONS, damping=MAX_CURVATURE
    )


def _dwd_loss(margin: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    far = np.maximum(margin, 0.5)
    beyond = margin > 0.5
    loss = np.where(beyond, 0.25 / far, 1 - margin)
    return loss, 0.25 / far**2, np.where(beyond, 0.5 / far**3, 0.0)
