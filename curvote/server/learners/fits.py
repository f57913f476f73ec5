"""Fits of linear classifiers to a batch of problems, and shared checks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import InternalError, UserError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

LARGEST_REPORT = 1e100  # squares of larger reports would overflow
NEGLIGIBLE = 1e-12  # a spread below this part of its centre is rounding error


@dataclass(frozen=True, eq=False)
class Fits:
    """The linear classifiers of B problems: sign(coef . z + intercept).

    ``coef`` [B, d] and ``intercept`` [B] are always finite. ``flagged`` [B] marks
    degenerate problems; each learner says which those are and what it did about them.
    ``ridge`` is the penalty that flagged problems got, 0 where the learner has none.
    """

    coef: FloatArray
    intercept: FloatArray
    flagged: BoolArray
    ridge: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise InternalError("a learner returned coefficients that are not finite.")


def check_problems(
    reports: ArrayLike, labels: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return ``reports`` [B, n, d] and ``labels`` [B, n] as float64."""
    x = validate.finite(reports=reports)
    y = np.asarray(labels)
    if x.ndim != 3 or not x.size:
        raise UserError(
            f"reports has shape {x.shape}; it must be [B, n, d], not empty."
        )
    if y.shape != x.shape[:2]:
        raise UserError(f"labels has shape {y.shape}; reports ask for {x.shape[:2]}.")
    valid = (y == 1) | (y == -1)
    if not valid.all():
        strange = y[~valid].flat[0]
        raise UserError(f"labels holds {strange!s}; every label must be -1 or +1.")
    if np.abs(x).max() > LARGEST_REPORT:
        raise UserError(
            f"reports holds {np.abs(x).max():g}; values must stay within"
            f" {LARGEST_REPORT:g}."
        )
    return x, y.astype(np.float64)


def check_gram(gram: ArrayLike, d: int) -> FloatArray:
    """Return ``gram`` if it is symmetric, positive definite and (d, d)."""
    g = validate.finite(gram=gram)
    if g.shape != (d, d) or not np.allclose(g, g.T, atol=0):
        raise UserError(f"gram has shape {g.shape}; it must be symmetric, ({d}, {d}).")
    if np.linalg.eigvalsh(g)[0] <= 0:
        raise UserError("gram is not positive definite; no basis has such a matrix.")
    return g


def has_one_class(labels: FloatArray) -> BoolArray:
    """Return which rows of ``labels`` [B, n] hold a single class."""
    return np.asarray(np.abs(labels.sum(axis=1)) == labels.shape[1])


def majority_label(labels: FloatArray) -> FloatArray:
    """Return the commoner label of each row, [B]; a tie gives -1.

    It is the intercept of the constant classifier (coef 0) that stands in where a
    problem has one class or no direction at all.
    """
    return np.where(labels.sum(axis=1) > 0, 1.0, -1.0)


def within_classes(
    reports: FloatArray, labels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the class means [2, B, d] and the reports less their means."""
    positive = labels > 0
    means = np.stack(
        [_member_mean(reports, positive), _member_mean(reports, ~positive)]
    )
    class_means = np.where(positive[:, :, None], means[0][:, None], means[1][:, None])
    return means, reports - class_means


def _member_mean(reports: FloatArray, members: BoolArray) -> FloatArray:
    total = (members[:, None, :].astype(np.float64) @ reports)[:, 0]
    return np.asarray(total / np.maximum(members.sum(axis=1), 1)[:, None])
