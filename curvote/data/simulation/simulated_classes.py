"""Simulation of K Gaussian classes in d dimensions, equally frequent.

Every class has the identity as its covariance matrix. Its mean is a corner of a regular
simplex, given by its cosine coefficients: coordinate j of the mean of class k is c
cos(pi j (2k + 1) / 2K), j = 1, 2, ..., at most K - 1 of them. Where d is larger, the
other coordinates are noise; where it is smaller, the smoothest ones remain. The factor
c makes ``distance`` the root mean square of the distances between two means, which are
all alike for d >= K - 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field, FiniteFloat
from scipy.fft import dct
from scipy.special import ndtri, softmax
from scipy.stats import qmc

from curvote.base.classes import Classes
from curvote.base.validate import FloatArray
from curvote.chain.settings import Strict, WholeNumber
from curvote.data import columns
from curvote.data.columns import ClientColumns, Feature, Paths

SIMULATED = True
_FAR = 5.0  # standard deviations beyond the farthest mean
_POINTS = 13  # 2^13 points of a Sobol sequence around each mean


class Parameters(Strict):
    """Settings of ``source:``: classes, dimensions and distance of means.

    ``distance`` is in standard deviations of a class.
    """

    name: Literal["simulated-classes"] = "simulated-classes"
    n_classes: Annotated[int, Field(ge=2, le=128, strict=True)] = 10
    d: WholeNumber = 8
    distance: Annotated[FiniteFloat, Field(gt=0)] = 6.3


files, size = columns.no_files, columns.no_size


def width(parameters: Parameters) -> int:
    """Return how many numbers a record has by the pipeline."""
    return parameters.d


def classes(parameters: Parameters) -> Classes:
    """Return the classes "0" to "K - 1"."""
    return Classes(map(str, range(parameters.n_classes)))


def facts(parameters: Parameters, _paths: Paths | None = None) -> dict[str, Any]:
    """Return the public metadata of the records as plain JSON values."""
    law = parameters.n_classes, parameters.d, parameters.distance
    reach = float(np.abs(class_means(*law)).max()) + _FAR
    why = f"the farthest mean and {_FAR:g} standard deviations"
    features = [
        Feature(f"x{j + 1}", "number", -reach, reach, why) for j in range(parameters.d)
    ]
    return {
        "title": f"{parameters.n_classes} Gaussian classes",
        "grid": list(range(1, parameters.d + 1)),
        "domain": [1.0, float(parameters.d)],
        "unit": "number",
        "classes": list(classes(parameters)),
        "features": [feature.to_json() for feature in features],
        "simulated": SIMULATED,
        "rows": None,
        "counts": {},
        "notes": [],
        "record": "record",
        "bayes_error": bayes_error(*law),
    }


def clients(parameters: Parameters, n: int, generator: Generator) -> ClientColumns:
    """Return ``n`` new clients: client_id, label, group (n,) and curve (n, d)."""
    law = parameters.n_classes, parameters.d, parameters.distance
    label = generator.integers(parameters.n_classes, size=n)
    noise = generator.standard_normal((n, parameters.d))
    return columns.client_columns(class_means(*law)[label] + noise, label)


def eta(parameters: Parameters, x: FloatArray) -> FloatArray:
    """Return the regression functions P(Y = k | x), (n, K), at ``x`` (n, d)."""
    middle = class_means(parameters.n_classes, parameters.d, parameters.distance)
    return np.asarray(softmax(_class_scores(x, middle), axis=1))


def class_means(n_classes: int, d: int, distance: float) -> FloatArray:
    """Return the means (K, d) of the classes, around 0."""
    corners = dct(np.eye(n_classes), norm="ortho")[:, 1 : d + 1]
    pairs = n_classes * (n_classes - 1) / 2
    # Around their mean K points have sum of squares K: that of all pairs, over K.
    square = n_classes * (corners**2).sum() / pairs
    vertices = np.zeros((n_classes, d))
    vertices[:, : corners.shape[1]] = corners * (distance / np.sqrt(square))
    return vertices


def _class_scores(x: FloatArray, middle: FloatArray) -> FloatArray:
    return np.asarray(x @ middle.T - (middle**2).sum(axis=1) / 2)


@lru_cache
def bayes_error(n_classes: int, d: int, distance: float) -> float:
    """Return E[1 - max_k P(Y = k | X)], the least possible error, to about 1e-4.

    A mean over the same quasi-random Gaussian points around each mean. Only the span of
    the means counts.
    """
    middle = class_means(n_classes, min(d, n_classes - 1), distance)
    uniform = qmc.Sobol(middle.shape[1], scramble=False).random_base2(_POINTS)
    normal = ndtri(uniform + 0.5 / len(uniform))
    errors = [
        1 - softmax(_class_scores(mean + normal, middle), axis=1).max(axis=1).mean()
        for mean in middle
    ]
    return float(np.mean(errors))
