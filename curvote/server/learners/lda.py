"""Linear discriminant analysis, batched: Fisher's slope, priors from the labels.

It equals scikit-learn's ``LinearDiscriminantAnalysis`` as it comes, where the
covariance is regular. Unlike ``cg`` it does not see functions and has no parameter.
"""

from __future__ import annotations

import numpy as np

from curvote.server.learners import fits
from curvote.server.learners.fits import Fits, FloatArray
from curvote.server.learners.newton import BlockFit, fit_in_blocks, linear_solver

LDA_RIDGE = 1e-3  # added to the within-class correlation matrix of flagged problems
SINGULAR = 1e-8  # smallest eigenvalue of it; scikit-learn drops singular values of 1e-4


def fit_lda(reports: FloatArray, labels: FloatArray) -> Fits:
    """Return the discriminants of ``reports`` [B, n, d], ``labels`` [B, n].

    With m1, m0 the class means, p1, p0 the class shares and S the pooled covariance
    within classes (divisor n): coef = S^-1 (m1 - m0), intercept =
    log(p1/p0) - coef . (m1 + m0)/2. It is the rule of Bayes for Gaussian classes of
    one covariance, at the maximum of their likelihood (Fisher 1936).

    Flagged: S is singular (its correlation matrix then gets RIDGE = 1e-3 on the
    diagonal), and one class (coef 0,
    intercept the label).
    """
    return fit_in_blocks(_fit_lda_block, reports, labels, LDA_RIDGE)


def _fit_lda_block(reports: FloatArray, labels: FloatArray) -> BlockFit:
    constant = fits.has_one_class(labels)
    means, within = fits.within_classes(reports, labels)
    difference = means[0] - means[1]
    scale = _coordinate_scale(within, means)
    within /= scale[:, None]
    correlation = within.swapaxes(1, 2) @ within / reports.shape[1]
    singular = np.linalg.eigvalsh(correlation)[:, 0] < SINGULAR
    ridge = np.where(singular, LDA_RIDGE, 0.0)[:, None]
    coef = linear_solver(correlation, ridge)(difference / scale) / scale
    coef[constant] = 0
    odds = (labels > 0).sum(axis=1) / np.maximum((labels < 0).sum(axis=1), 1)
    middle = means[0] / 2 + means[1] / 2
    intercept = np.log(np.where(constant, 1, odds)) - (coef * middle).sum(axis=1)
    intercept[constant] = fits.majority_label(labels[constant])
    return coef, intercept, constant | singular


def _coordinate_scale(within: FloatArray, means: FloatArray) -> FloatArray:
    """Return the deviation within classes [B, d], else between them.

    Infinite, which makes the coef 0, for a coordinate that has neither.
    """
    rounding = fits.NEGLIGIBLE * np.abs(means).max(axis=0) + 1 / 1e100
    spread = np.sqrt(np.square(within).mean(axis=1))
    between = np.abs(means[0] - means[1])
    between[between <= rounding] = np.inf
    return np.asarray(np.where(spread <= rounding, between, spread))
