"""Linear classifiers of scikit-learn as learners, one problem after the other.

The learner ``sklearn:linear_model.RidgeClassifier`` is the class of that path. It must
bring ``coef_`` and ``intercept_``; what it minimises is its own affair.
"""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError, did_you_mean
from curvote.base.warning_filters import FILTERS
from curvote.learning.learners import registry

SKLEARN_PREFIX = "sklearn."
LINEAR_CLASSES = (
    "discriminant_analysis.LinearDiscriminantAnalysis",
    "linear_model.LogisticRegression",
    "linear_model.LogisticRegressionCV",
    "linear_model.Perceptron",
    "linear_model.RidgeClassifier",
    "linear_model.RidgeClassifierCV",
    "linear_model.SGDClassifier",
    "svm.LinearSVC",
)
DEFAULT_SEED = 0  # of classes that draw, where the user gives none
PROBLEMS_PER_WORKER = 200  # problems from which on a worker process pays
# Sixteen points that a linear classifier can be fitted to, six folds included.
TRIAL_POINTS = np.array([[k % 4, k // 4] for k in range(16)], dtype=np.float64)
TRIAL_LABELS = np.where(
    TRIAL_POINTS.sum(axis=1) + (TRIAL_POINTS[:, 0] == 1) > 3, 1.0, -1.0
)
FIT_ERRORS = (ValueError, ArithmeticError, np.linalg.LinAlgError)


def fit(
    reports: registry.FloatArray,
    labels: registry.FloatArray,
    *,
    path: str,
    workers: int = 1,
    **params: Any,
) -> registry.Fits:
    """Return the fits of the class ``path`` to each problem.

    ``reports`` is [B, n, d], ``labels`` [B, n]. ``path`` is MODULE.CLASS inside
    scikit-learn and ``params`` are the class's own; a ``random_state`` that it takes
    is 0 where none is given. ``workers`` (>= 1) processes share the problems, each at
    least 200; leave it at 1 in a pipeline, whose blocks run in processes already. A
    path or parameter that cannot work is a UserError.

    Flagged: one class, a fit that fails or is not finite (coef 0, intercept the
    majority's label), and a fit that warns, as of convergence (kept as it is).
    """
    model = build_estimator(path, params)
    workers = validate.at_least(1, workers=workers)
    shares = min(workers, max(1, len(reports) // PROBLEMS_PER_WORKER))
    parts = zip(
        np.array_split(reports, shares), np.array_split(labels, shares), strict=True
    )
    if shares == 1:
        results = [_fit_part(model, *part) for part in parts]
    else:
        from joblib import Parallel, delayed

        results = Parallel(n_jobs=shares)(delayed(_fit_part)(model, *p) for p in parts)
    theta, flagged = (np.concatenate(part) for part in zip(*results, strict=True))
    return registry.Fits(theta[:, 1:], theta[:, 0], flagged, ridge=0.0)


def parameters(path: str) -> list[str]:
    """Return the names of what ``fit`` takes for the class ``path``, or a UserError."""
    return ["workers", *inspect.signature(_find_class(path)).parameters]


def build_estimator(path: str, params: dict[str, Any]) -> Any:
    """Return the unfitted estimator; one that cannot serve is a UserError.

    It is tried out on a few points: parameters may be wrong, or make it not linear.
    """
    kind = _find_class(path)
    allowed = inspect.signature(kind).parameters
    for param in params:
        if param not in allowed:
            hint = did_you_mean(param, allowed)
            raise UserError(
                f"learner sklearn:{path} takes no parameter {param!r}.{hint}"
            )
    if "random_state" in allowed:
        params = {"random_state": DEFAULT_SEED} | params
    try:
        with _record_warnings():
            model = kind(**params)
        shape = _fit_one(model, TRIAL_POINTS, TRIAL_LABELS)[0].shape
    except AttributeError as error:
        raise UserError(f"learner sklearn:{path} is not linear: {error}.") from error
    except (TypeError, ValueError) as error:
        raise UserError(f"learner sklearn:{path} cannot work: {error}") from error
    if shape != (3,):
        raise UserError(f"learner sklearn:{path} is not linear.")
    return model


def _find_class(path: str) -> Any:
    """Return the classifier class at ``path`` inside scikit-learn."""
    path = path.removeprefix(SKLEARN_PREFIX)
    *modules, name = path.split(".")
    loaded = None
    if modules and all(part.isidentifier() and part[0] != "_" for part in modules):
        try:
            loaded = getattr(
                import_module(SKLEARN_PREFIX + ".".join(modules)), name, None
            )
        except ModuleNotFoundError:
            loaded = None
    if not str(getattr(loaded, "__module__", "")).startswith(SKLEARN_PREFIX):
        hint = did_you_mean(path, LINEAR_CLASSES)
        raise UserError(f"scikit-learn has no {path!r}.{hint}")
    from sklearn.base import ClassifierMixin

    if not (inspect.isclass(loaded) and issubclass(loaded, ClassifierMixin)):
        raise UserError(f"sklearn:{path} is not a classifier.")
    return loaded


def _fit_part(
    model: Any, reports: registry.FloatArray, labels: registry.FloatArray
) -> tuple[registry.FloatArray, NDArray[np.bool_]]:
    """Return intercept and coef [B, 1 + d] and the flags [B] of problems."""
    theta = np.zeros((len(reports), 1 + reports.shape[2]))
    flagged = registry.has_one_class(labels)
    theta[:, 0] = registry.majority_label(labels)
    for b in np.flatnonzero(~flagged):
        try:
            fitted, flagged[b] = _fit_one(model, reports[b], labels[b])
        except FIT_ERRORS:
            fitted, flagged[b] = theta[b], True
        if np.isfinite(fitted).all():
            theta[b] = fitted
        else:
            flagged[b] = True
    return theta, flagged


@contextmanager
def _record_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Record the warnings of scikit-learn that matter now."""
    with (
        FILTERS,
        warnings.catch_warnings(record=True) as recorded,
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield recorded


def _fit_one(
    model: Any, reports: registry.FloatArray, labels: registry.FloatArray
) -> tuple[registry.FloatArray, bool]:
    """Return intercept and coef [1 + d], and whether the fit warned."""
    from sklearn.base import clone

    with _record_warnings() as recorded:
        fitted = clone(model).fit(reports, labels)
    return np.append(fitted.intercept_, np.ravel(fitted.coef_)), bool(recorded)
