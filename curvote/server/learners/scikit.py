"""Any linear classifier of scikit-learn, one problem after the other.

The learner ``sklearn:linear_model.RidgeClassifier`` is the class of that path. It must
bring ``coef_`` and ``intercept_``; what it minimises is its own affair.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.errors import UserError, did_you_mean
from curvote.server.learners.fits import Fits, FloatArray, majority, one_class
from curvote.warned import FILTERS

PACKAGE = "sklearn."
LINEAR = (
    "discriminant_analysis.LinearDiscriminantAnalysis",
    "linear_model.LogisticRegression",
    "linear_model.LogisticRegressionCV",
    "linear_model.Perceptron",
    "linear_model.RidgeClassifier",
    "linear_model.RidgeClassifierCV",
    "linear_model.SGDClassifier",
    "svm.LinearSVC",
)
SEED = 0  # of classes that draw, where the user gives none
SHARE = 200  # problems from which on a worker process pays
# Sixteen points that a linear classifier can be fitted to, six folds included.
TRIAL = np.array([[k % 4, k // 4] for k in range(16)], dtype=np.float64)
TRIAL_LABELS = np.where(TRIAL.sum(axis=1) + (TRIAL[:, 0] == 1) > 3, 1.0, -1.0)
FAILED = (ValueError, ArithmeticError, np.linalg.LinAlgError)


def fit(
    reports: FloatArray,
    labels: FloatArray,
    *,
    path: str,
    workers: int = 1,
    **params: Any,
) -> Fits:
    """Return the fits of the class ``path`` to each problem.

    ``reports`` is [B, n, d], ``labels`` [B, n]. ``path`` is MODULE.CLASS inside
    scikit-learn and ``params`` are the class's own; a ``random_state`` that it takes
    is 0 where none is given. ``workers`` (>= 1) processes share the problems, each at
    least 200; leave it at 1 in a pipeline, whose blocks run in processes already. A
    path or parameter that cannot work is a UserError.

    Flagged: one class, a fit that fails or is not finite (coef 0, intercept the
    majority's label), and a fit that warns, as of convergence (kept as it is).
    """
    model = build(path, params)
    workers = validate.at_least(1, workers=workers)
    shares = min(workers, max(1, len(reports) // SHARE))
    parts = zip(
        np.array_split(reports, shares), np.array_split(labels, shares), strict=True
    )
    if shares == 1:
        found = [_fit_part(model, *part) for part in parts]
    else:
        from joblib import Parallel, delayed

        found = Parallel(n_jobs=shares)(delayed(_fit_part)(model, *p) for p in parts)
    theta, flagged = (np.concatenate(part) for part in zip(*found, strict=True))
    return Fits(theta[:, 1:], theta[:, 0], flagged, ridge=0.0)


def parameters(path: str) -> list[str]:
    """Return the names of what ``fit`` takes for the class ``path``, or a UserError."""
    return ["workers", *inspect.signature(_classifier(path)).parameters]


def build(path: str, params: dict[str, Any]) -> Any:
    """Return the estimator, not fitted, or a UserError that says why it cannot serve.

    It is tried out on a few points: parameters may be wrong, or make it not linear.
    """
    kind = _classifier(path)
    known = inspect.signature(kind).parameters
    for given in params:
        if given not in known:
            hint = did_you_mean(given, known)
            raise UserError(
                f"learner sklearn:{path} takes no parameter {given!r}.{hint}"
            )
    if "random_state" in known:
        params = {"random_state": SEED} | params
    try:
        with _listening():
            model = kind(**params)
        shape = _theta(model, TRIAL, TRIAL_LABELS)[0].shape
    except AttributeError as error:
        raise UserError(f"learner sklearn:{path} is not linear: {error}.") from error
    except (TypeError, ValueError) as error:
        raise UserError(f"learner sklearn:{path} cannot work: {error}") from error
    if shape != (3,):
        raise UserError(f"learner sklearn:{path} is not linear.")
    return model


def _classifier(path: str) -> Any:
    """Return the class at ``path``; nothing outside scikit-learn is ever imported."""
    path = path.removeprefix(PACKAGE)
    *modules, name = path.split(".")
    found = None
    if modules and all(part.isidentifier() and part[0] != "_" for part in modules):
        try:
            found = getattr(import_module(PACKAGE + ".".join(modules)), name, None)
        except ModuleNotFoundError:
            found = None
    if not str(getattr(found, "__module__", "")).startswith(PACKAGE):
        hint = did_you_mean(path, LINEAR)
        raise UserError(f"scikit-learn has no {path!r}.{hint}")
    from sklearn.base import ClassifierMixin

    if not (inspect.isclass(found) and issubclass(found, ClassifierMixin)):
        raise UserError(f"sklearn:{path} is not a classifier.")
    return found


def _fit_part(
    model: Any, reports: FloatArray, labels: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return intercept and coef [B, 1 + d] and the flags [B] of some problems."""
    theta = np.zeros((len(reports), 1 + reports.shape[2]))
    flagged = one_class(labels)
    theta[:, 0] = majority(labels)
    for b in np.flatnonzero(~flagged):
        try:
            fitted, flagged[b] = _theta(model, reports[b], labels[b])
        except FAILED:
            fitted, flagged[b] = theta[b], True
        if np.isfinite(fitted).all():
            theta[b] = fitted
        else:
            flagged[b] = True
    return theta, flagged


@contextmanager
def _listening() -> Iterator[list[warnings.WarningMessage]]:
    """Collect what scikit-learn warns of, less what will only matter later."""
    with (
        FILTERS,
        warnings.catch_warnings(record=True) as said,
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield said


def _theta(
    model: Any, reports: FloatArray, labels: FloatArray
) -> tuple[FloatArray, bool]:
    """Return intercept and coef [1 + d], and whether the fit warned of anything."""
    from sklearn.base import clone

    with _listening() as said:
        fitted = clone(model).fit(reports, labels)
    return np.append(fitted.intercept_, np.ravel(fitted.coef_)), bool(said)
