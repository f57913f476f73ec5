"""Regressor from public features and noised labels, as a scikit-learn class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote import validate
from curvote.errors import UserError

_ALPHAS: Final = np.logspace(-2, 6, 17)
_FOLDS: Final = 5
# Shares of the records that are neighbours, or in a leaf.
_SHARES: Final = (0.005, 0.02, 0.05, 0.15, 0.4)
_TREES: Final = 100
_ANCHORS: Final = 1000
_COLUMNS: Final = 40


def make_regressor(estimator: Any, n: int, seed: int) -> Any:
    """Return an unfitted regressor for ``n`` records.

    ``estimator`` is ``ridge``, ``knn``, ``forest``, ``spectral`` or a scikit-learn
    regressor, which is cloned; anything else is a UserError.
    """
    if isinstance(estimator, str):
        return REGRESSORS[validate.one_of(REGRESSORS, estimator=estimator)](n, seed)
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise UserError(
            f"estimator is {validate.format_value(estimator)}; give one of"
            f" {', '.join(REGRESSORS)}, or a scikit-learn regressor."
        )
    return clone(estimator)


def _ridge_regressor(_n: int, _seed: int) -> Any:
    return make_pipeline(StandardScaler(), RidgeCV(_ALPHAS))


def _knn_regressor(n: int, _seed: int) -> Any:
    folds = _fold_count(n)
    most = n - -(-n // folds)  # in the smallest training part
    near = KNeighborsRegressor(n_neighbors=min(most, 5))
    grid = {"kneighborsregressor__n_neighbors": _group_sizes(n, most)}
    return _grid_search(make_pipeline(StandardScaler(), near), grid, folds)


def _forest_regressor(n: int, seed: int) -> Any:
    trees = RandomForestRegressor(n_estimators=_TREES, random_state=seed)
    return _grid_search(trees, {"min_samples_leaf": _group_sizes(n, n)}, _fold_count(n))


def _spectral_regressor(n: int, seed: int) -> Any:
    from curvote.labels.spectral import Spectral

    anchors = min(n, _ANCHORS)
    graph = Spectral(
        m=min(_COLUMNS, anchors),
        anchors=anchors,
        neighbours=min(5, anchors),
        random_state=seed,
    )
    return make_pipeline(StandardScaler(), graph, RidgeCV(_ALPHAS))


def _fold_count(n: int) -> int:
    return min(_FOLDS, n)


def _group_sizes(n: int, most: int) -> list[int]:
    """Return numbers of neighbours or of records in a leaf, 1 to ``most``."""
    return sorted({min(most, max(1, round(share * n))) for share in _SHARES})


def _grid_search(model: Any, grid: Mapping[str, list[int]], folds: int) -> Any:
    """Return a search by the squared error, which noise raises for all alike."""
    return GridSearchCV(model, grid, scoring="neg_mean_squared_error", cv=folds)


REGRESSORS: Final[Mapping[str, Callable[[int, int], Any]]] = {
    "ridge": _ridge_regressor,
    "knn": _knn_regressor,
    "forest": _forest_regressor,
    "spectral": _spectral_regressor,
}
