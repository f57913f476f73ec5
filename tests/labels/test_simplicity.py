"""Which candidates are simpler than others."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote.systems.labels.learners.knn import KNN, RidgeVotes
from curvote.systems.labels.learners.spectral import SpectralVotes
from curvote.systems.labels.method.search import simplicity_order


def piped(alpha: float) -> Any:
    """Return ridge regression behind a scaler."""
    return make_pipeline(StandardScaler(), Ridge(alpha))


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([KNN(5), KNN(50), KNN(20)], [1, 2, 0]),
        ([SpectralVotes(30), SpectralVotes(10)], [1, 0]),
        ([RidgeVotes(1.0), RidgeVotes(100.0)], [1, 0]),
        ([KNeighborsRegressor(5), KNeighborsRegressor(9)], [1, 0]),
        ([piped(1), piped(10)], [1, 0]),
        (["spectral", "ridge", "knn"], [0, 1, 2]),
        (["ridge", KNN(5), RidgeVotes(1.0), KNN(50)], [0, 2, 3, 1]),
        ([KNN(), KNN()], [0, 1]),
    ],
)
def test_smoother_ones_come_first(candidates: list[Any], expected: list[int]) -> None:
    """Within a kind by its own number; kinds, and what has none, as in the grid."""
    found = simplicity_order(candidates)
    if expected == [0, 2, 3, 1]:  # a tuned ridge has no number
        assert sorted(found[:2]) == [0, 2]
        assert found[2:] == [3, 1]
    else:
        assert found == expected
