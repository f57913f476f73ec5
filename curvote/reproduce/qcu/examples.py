"""Two example classifiers of two numbers, with the paper's parameters.

Figure 3 shows one classifier and says that both are it; they are not the same.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from curvote.reproduce.qcu.studies import BOUNDS
from curvote.utility.engines.base import Question
from curvote.validate import FloatArray

POINT: Final = np.array([[0.5, 0.5]])
PRINTED_RADIUS: Final = 0.20  # example 1 and figure 3
PRINTED_BOXES: Final = {  # example 3 and figure 5
    "a": np.array([[0.0, 0.55], [0.0, 0.8]]),
    "b": np.array([[0.0, 0.7], [0.0, 0.7]]),
}


def example_network() -> Any:
    """Return example 5: two rectified units with the printed weights."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((2,), max_iter=1)
    model.partial_fit(BOUNDS, [1, 2], classes=[1, 2])
    outer, offset = np.array([[-3.05, 0.40], [4.02, -0.22]]), np.array([0.94, -0.58])
    # Two classes have one output here: the second less the first.
    model.coefs_ = [
        np.array([[-1.86, -2.09], [0.12, -0.46]]).T,
        np.diff(outer, axis=0).T,
    ]
    model.intercepts_ = [np.array([3.71, -0.08]), np.diff(offset)]
    return model


def example_quadratic() -> Any:
    """Return example 4: normal classes around (0, 0) and (1, 1), variances 1 and 2."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    # Four points of the wanted mean and variance are what it estimates them from.
    corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    X = np.vstack([corners, 1 + math.sqrt(2) * corners])
    return QuadraticDiscriminantAnalysis().fit(X, np.repeat([1, 2], len(corners)))


CLASSIFIERS: Final = {"network": example_network, "quadratic": example_quadratic}


def example_question(model: Any) -> Question:
    """Return the robustness question of a classifier around (.5, .5)."""
    return Question(model, POINT, (0, 1), BOUNDS)


def quadratic_distance(point: FloatArray) -> float:
    """Return a point's distance from the boundary of example 4."""
    return abs(2 * math.sqrt(math.log(2) + 1) - float(np.hypot(*(point + 1))))
