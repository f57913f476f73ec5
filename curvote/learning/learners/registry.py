"""Registry of learners: functions by name, their parameters and shared checks."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import InternalError, UserError, did_you_mean
from curvote.base.registry import Registry

_PLACES = {
    "logistic": "curvote.learning.learners.margins:fit_logistic",
    "centroid": "curvote.learning.learners.discriminants:fit_centroid",
    "cg": "curvote.learning.learners.discriminants:fit_conjugate_gradients",
    "svm": "curvote.learning.learners.margins:fit_svm",
    "svm_squared": "curvote.learning.learners.margins:fit_svm_squared",
    "dwd": "curvote.learning.learners.margins:fit_dwd",
    "lda": "curvote.learning.learners.discriminants:fit_lda",
    "sklearn": "curvote.learning.learners.scikit:fit",
}
LEARNERS = Registry("learner", _PLACES, "curvote.learners")
# These are families: a path after a colon says which learner is meant.
FAMILIES = {"sklearn": "linear_model.RidgeClassifier"}


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


TRIAL_REPORTS = np.array([[[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]]])


def names() -> list[str]:
    """Return the names that ``fit`` knows, without families such as ``sklearn:``."""
    return sorted(set(LEARNERS) - set(FAMILIES))


def parameters(name: str) -> list[str]:
    """Return the names of the parameters that learner ``name`` takes."""
    function, path = _find_learner(name)
    if path:
        names: list[str] = import_module(function.__module__).parameters(**path)
        return names
    return list(inspect.signature(function).parameters)[2:]


def fit(name: str, reports: ArrayLike, labels: ArrayLike, **params: Any) -> Fits:
    """Fit learner ``name`` to each of B problems of the same size.

    ``reports`` is [B, n, d], finite; ``labels`` is [B, n] in -1/+1. The coefficients
    are finite for every input; ``flagged`` marks the problems where they had to be
    made so. An unknown learner or parameter, another shape or label is a UserError.
    """
    function, path = _find_learner(name)
    allowed = parameters(name)
    for param in params:
        if param not in allowed:
            hint = did_you_mean(param, allowed) if allowed else ""
            raise UserError(f"learner {name} takes no parameter {param!r}.{hint}")
    return function(*check_problems(reports, labels), **path, **params)


def check(name: str, params: Mapping[str, Any]) -> None:
    """Raise a UserError unless learner ``name`` can work with ``params``.

    It is tried out on four points, so wrong values are found as well as wrong names.
    """
    try:
        fit(name, TRIAL_REPORTS, [[-1, -1, 1, 1]], **params)
    except TypeError as error:
        raise UserError(f"learner {name} cannot work: {error}.") from error


def _find_learner(name: str) -> tuple[Callable[..., Fits], dict[str, str]]:
    """Return the function that fits and, for a member of a family, its path."""
    family, colon, path = str(name).partition(":")
    if colon and family not in FAMILIES and name not in LEARNERS:
        raise UserError(f"learner is {name!r}; only {', '.join(FAMILIES)} take a path.")
    if family in FAMILIES and not path:
        raise UserError(
            f"learner is {name!r}; say which, as in {family}:{FAMILIES[family]}."
        )
    is_member = family in FAMILIES
    function: Callable[..., Fits] = LEARNERS.load(family if is_member else name)
    return function, {"path": path} if is_member else {}
