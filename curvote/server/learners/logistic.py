"""Logistic regression without penalty, for a whole batch of problems at once.

Newton's method (iteratively reweighted least squares) on standardised coordinates, so
that neither the units of the reports nor an ill-placed origin matter. All problems of
a batch take their steps together, written with ``matmul``; a problem leaves the batch
when it has converged.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from curvote.server.learners.fits import (
    NEGLIGIBLE,
    BoolArray,
    Fits,
    FloatArray,
    majority,
    one_class,
)

RIDGE = 1e-3  # flagged problems minimise loss + RIDGE/2 |standardised coef|^2
ITERATIONS = 25  # as R's glm
RIDGE_ITERATIONS = 100
TOLERANCE = 1e-8  # largest step, relative to 1 + the largest coefficient
COLLINEAR = 1e-12  # smallest eigenvalue of the correlation matrix
JITTER = 1e-13  # part of the trace that keeps every Hessian invertible
BLOCK = 2**17  # values that are worked on together, so that they stay in the cache


def fit(reports: FloatArray, labels: FloatArray) -> Fits:
    """Return the maximum-likelihood fits to ``reports`` [B, n, d], ``labels`` [B, n].

    Flagged are problems without a unique maximum: separable (some iterate has every
    point on its right side), collinear, or not converged after 25 iterations; these
    get the ridge penalty RIDGE = 1e-3 on the coefficients in units of each
    coordinate's standard deviation, the intercept free. One class only: flagged, the
    constant classifier with coef 0 and intercept +1 or -1. This fit reproduces the
    tables of MRMA; scikit-learn's default penalty does not.
    """
    problems = max(1, BLOCK // reports[0].size)
    blocks = [
        _fit_block(reports[start : start + problems], labels[start : start + problems])
        for start in range(0, len(reports), problems)
    ]
    coef, intercept, flagged = zip(*blocks, strict=True)
    return Fits(
        np.concatenate(coef), np.concatenate(intercept), np.concatenate(flagged), RIDGE
    )


def _fit_block(
    reports: FloatArray, labels: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return coef, intercept and flagged of some of the problems."""
    design, centre, scale = _signed_design(reports, labels)
    theta = np.zeros(design.shape[:2])
    constant = one_class(labels)
    regular = ~constant & ~_collinear(design)
    first = np.flatnonzero(regular)
    theta[first], regular[first] = _newton(design[first], 0.0, ITERATIONS)
    again = ~regular & ~constant
    theta[again], _ = _newton(design[again], RIDGE, RIDGE_ITERATIONS)
    coef = theta[:, 1:] / scale
    intercept = theta[:, 0] - (coef * centre).sum(axis=1)
    intercept[constant] = majority(labels[constant])
    return coef, intercept, ~regular


def _signed_design(
    reports: FloatArray, labels: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return label * (1, standardised report) as [B, d+1, n], and centre and scale.

    The scale of a constant coordinate is infinite: it becomes 0, and so does its coef.
    """
    batch, n, d = reports.shape
    design = np.ones((batch, d + 1, n))
    centre = reports.mean(axis=1)
    np.subtract(reports.swapaxes(1, 2), centre[:, :, None], out=design[:, 1:])
    scale = np.sqrt(np.square(design[:, 1:]).mean(axis=2))
    scale[scale <= NEGLIGIBLE * np.abs(centre) + 1 / 1e100] = np.inf
    design[:, 1:] /= scale[:, :, None]
    design *= labels[:, None, :]
    return design, centre, scale


def _collinear(design: FloatArray) -> BoolArray:
    """Return which problems have coordinates that depend on each other, or too many."""
    slopes = design[:, 1:]
    correlation = slopes @ slopes.swapaxes(1, 2) / slopes.shape[2]
    return np.asarray(np.linalg.eigvalsh(correlation)[:, 0] < COLLINEAR)


@dataclass(frozen=True)
class _Batch:
    """The problems still under way: each stands at ``base`` and tries ``step``."""

    index: np.ndarray[tuple[int], np.dtype[np.intp]]
    design: FloatArray
    base: FloatArray
    step: FloatArray
    loss: FloatArray

    def only(self, mask: BoolArray) -> _Batch:
        if mask.all():
            return self
        return _Batch(*(getattr(self, field.name)[mask] for field in fields(self)))


def _newton(
    design: FloatArray, ridge: float, iterations: int
) -> tuple[FloatArray, BoolArray]:
    """Return the minimisers [B, p] and which problems converged to a unique one.

    A step that increases the loss is halved until it does not. Without a ridge, a
    problem also stops, as not converged, once it is seen to be separable.
    """
    theta, converged = np.zeros(design.shape[:2]), np.zeros(len(design), dtype=bool)
    loss = np.full(len(design), np.inf)
    batch = _Batch(np.arange(len(design)), design, theta, theta, loss)
    for _ in range(iterations):
        at = batch.base + batch.step
        loss, step, margin = _evaluate(batch.design, at, ridge)
        worse = loss > batch.loss * (1 + 1e-12)
        small = np.abs(step).max(axis=1) <= TOLERANCE * (1 + np.abs(at).max(axis=1))
        separated = (margin > 0) & (ridge == 0)
        done = small & ~worse & ~separated
        last = done[:, None] * step  # free, and squares the remaining error
        theta[batch.index] = np.where(worse[:, None], batch.base, at + last)
        converged[batch.index] = done
        batch = _Batch(
            batch.index,
            batch.design,
            theta[batch.index],
            np.where(worse[:, None], batch.step / 2, step),
            np.where(worse, batch.loss, loss),
        ).only(~(done | separated))
        if not batch.index.size:
            break
    return theta, converged


def _evaluate(
    design: FloatArray, theta: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the loss [B], the Newton step [B, p] and the least margin [B] at theta."""
    penalty = np.full(theta.shape[1], ridge)
    penalty[0] = 0
    margin = (theta[:, None, :] @ design)[:, 0]
    small = np.exp(-np.abs(margin))  # never overflows; the sigmoid in either tail
    wrong = np.where(margin > 0, small, 1) / (1 + small)
    loss = (np.log1p(small) + np.maximum(-margin, 0)).sum(axis=1)
    loss += (penalty * theta**2).sum(axis=1) / 2
    descent = (design @ wrong[:, :, None])[:, :, 0] - penalty * theta
    curvature = small / (1 + small) ** 2
    hessian = (design * curvature[:, None, :]) @ design.swapaxes(1, 2)
    return loss, _solve(hessian, penalty, descent), margin.min(axis=1)


def _solve(hessian: FloatArray, penalty: FloatArray, right: FloatArray) -> FloatArray:
    """Return (hessian + penalty)^-1 right; the jitter never moves the minimum."""
    trace = np.trace(hessian, axis1=1, axis2=2)
    jitter = JITTER * np.maximum(trace, 1 / 1e100)
    diagonal = np.arange(len(penalty))
    hessian[:, diagonal, diagonal] += penalty + jitter[:, None]
    return np.asarray(np.linalg.solve(hessian, right[:, :, None])[:, :, 0])
