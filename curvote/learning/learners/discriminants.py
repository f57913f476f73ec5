"""Discriminants: conjugate gradients for curves, nearest centroid, and Fisher's.

Kraus and Stefanucci (2019), "Classification of functional fragments by regularized
linear classifiers with domain selection": stopping early is the regularisation. Here
for curves given by their basis coefficients, so the Gram matrix of the basis stands
in the operator, in the inner product and in the classifier.
"""

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.learning.learners import registry
from curvote.learning.learners.newton import BlockFit, fit_in_blocks, linear_solver
from curvote.learning.learners.registry import BoolArray, Fits, FloatArray

# All are relative: the data are scaled to 1, the Gram matrix to a mean diagonal of 1.
NO_DIRECTION = 1e-28  # squared norm of a mean difference that is rounding error
SOLVED_RESIDUAL = 1e-26  # squared residual, as a part of the first one
FLAT_CURVATURE = 1e-14  # curvature, as a part of its largest possible value


def fit_conjugate_gradients(
    reports: FloatArray,
    labels: FloatArray,
    *,
    gram: ArrayLike | None = None,
    steps: int = 5,
) -> Fits:
    """Return the discriminants of ``reports`` [B, n, d], ``labels`` [B, n].

    With m1, m0 the class means, S the pooled covariance within classes (divisor n - 2)
    and G = ``gram`` [d, d] (symmetric, positive definite; default identity): ``steps``
    (>= 1) conjugate-gradient steps in <u, v> = u'Gv from 0 solve (S G) psi = m1 - m0;
    coef = G psi, intercept = -coef . (m1 + m0)/2. A problem whose residual is 0 or
    whose curvature is not positive keeps what it has. From ``steps`` = d on this is
    the linear discriminant S^-1 (m1 - m0), whatever G.

    Flagged: one class or equal class means (coef 0, intercept the majority's label),
    and no variance along the mean difference (coef is the plain difference).
    """
    validate.at_least(1, steps=steps)
    n, d = reports.shape[1:]
    g = np.eye(d) if gram is None else registry.check_gram(gram, d)
    if gram is not None:  # its scale does not matter
        g = np.asarray(g * (d / np.trace(g)))
    means, within = registry.within_classes(reports, labels)
    difference = means[0] - means[1]
    unit = np.maximum(np.abs(within).max(axis=(1, 2)), np.abs(difference).max(axis=1))
    rounding = registry.NEGLIGIBLE * np.abs(means).max(axis=(0, 2)) + 1 / 1e100
    unit = np.where(unit <= rounding, np.inf, unit)
    within /= unit[:, None, None]
    covariance = within.swapaxes(1, 2) @ within / max(n - 2, 1)
    difference /= unit[:, None]
    psi, stuck = _conjugate_gradient(covariance, g, difference, steps)
    distance = _inner_product(difference, g, difference)
    degenerate = registry.has_one_class(labels) | (distance <= NO_DIRECTION)
    psi[degenerate] = 0
    coef = _times_gram(psi, g) / unit[:, None]
    intercept = -(coef * (means[0] / 2 + means[1] / 2)).sum(axis=1)
    intercept[degenerate] = registry.majority_label(labels[degenerate])
    return Fits(coef, intercept, degenerate | stuck, ridge=0.0)


def _times_gram(vectors: FloatArray, gram: FloatArray) -> FloatArray:
    """Return vectors [B, d] times the Gram matrix.

    As B small products: one large product may sum in an order that depends on B, and
    a problem's result must not depend on its batch.
    """
    return np.asarray((vectors[:, None, :] @ gram)[:, 0])


def _inner_product(u: FloatArray, gram: FloatArray, v: FloatArray) -> FloatArray:
    return np.asarray((_times_gram(u, gram) * v).sum(axis=1))


def _conjugate_gradient(
    covariance: FloatArray, gram: FloatArray, difference: FloatArray, steps: int
) -> tuple[FloatArray, BoolArray]:
    """Return psi [B, d] after ``steps`` steps, and which had no curvature.

    Those keep the mean difference itself, the direction of the first step.
    """
    psi, residual, direction = np.zeros_like(difference), difference, difference
    first = size = _inner_product(residual, gram, residual)
    total = (covariance @ gram).trace(axis1=1, axis2=2)
    flat = FLAT_CURVATURE * (total + FLAT_CURVATURE)
    for _ in range(steps):
        image = (covariance @ _times_gram(direction, gram)[:, :, None])[:, :, 0]
        curvature = _inner_product(direction, gram, image)
        going = (size > SOLVED_RESIDUAL * first) & (
            curvature > flat * _inner_product(direction, gram, direction)
        )
        length = np.divide(size, curvature, out=np.zeros_like(size), where=going)
        psi = psi + length[:, None] * direction
        residual = residual - length[:, None] * image
        previous = size
        size = np.where(going, _inner_product(residual, gram, residual), 0)
        turn = np.divide(size, previous, out=np.zeros_like(size), where=going)
        direction = residual + turn[:, None] * direction
    stuck = (psi == 0).all(axis=1)
    psi[stuck] = difference[stuck]
    return psi, stuck


def fit_centroid(
    reports: FloatArray, labels: FloatArray, *, gram: ArrayLike | None = None
) -> Fits:
    """Return the fit of conjugate gradients after one step."""
    return fit_conjugate_gradients(reports, labels, gram=gram, steps=1)


LDA_RIDGE = 1e-3  # added to the within-class correlation matrix of flagged problems
SINGULAR = 1e-8  # smallest eigenvalue of it; scikit-learn drops singular values of 1e-4


def fit_lda(reports: FloatArray, labels: FloatArray) -> Fits:
    """Return the discriminants of ``reports`` [B, n, d], ``labels`` [B, n].

    With m1, m0 the class means, p1, p0 the class shares and S the pooled covariance
    within classes (divisor n): coef = S^-1 (m1 - m0), intercept =
    log(p1/p0) - coef . (m1 + m0)/2. It is the rule of Bayes for Gaussian classes of
    one covariance, at the maximum of their likelihood (Fisher 1936).

    Flagged: S is singular (its correlation matrix then gets RIDGE = 1e-3 on the
    diagonal), and one class (coef 0, intercept the label).
    """
    return fit_in_blocks(_fit_lda_block, reports, labels, LDA_RIDGE)


def _fit_lda_block(reports: FloatArray, labels: FloatArray) -> BlockFit:
    constant = registry.has_one_class(labels)
    means, within = registry.within_classes(reports, labels)
    difference = means[0] - means[1]
    rounding = registry.NEGLIGIBLE * np.abs(means).max(axis=0) + 1 / 1e100
    spread = np.sqrt(np.square(within).mean(axis=1))
    between = np.abs(means[0] - means[1])
    between[between <= rounding] = np.inf
    scale = np.asarray(np.where(spread <= rounding, between, spread))
    within /= scale[:, None]
    correlation = within.swapaxes(1, 2) @ within / reports.shape[1]
    singular = np.linalg.eigvalsh(correlation)[:, 0] < SINGULAR
    ridge = np.where(singular, LDA_RIDGE, 0.0)[:, None]
    coef = linear_solver(correlation, ridge)(difference / scale) / scale
    coef[constant] = 0
    odds = (labels > 0).sum(axis=1) / np.maximum((labels < 0).sum(axis=1), 1)
    middle = means[0] / 2 + means[1] / 2
    intercept = np.log(np.where(constant, 1, odds)) - (coef * middle).sum(axis=1)
    intercept[constant] = registry.majority_label(labels[constant])
    return coef, intercept, constant | singular
