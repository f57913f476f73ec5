"""Simulation of K Gaussian classes on the unit circle (VEC section 5.1).

Class j has its centre at the angle 2 pi j / K and the same standard deviation in both
coordinates. The regression functions and the Bayes error are known.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Discriminator, Field, FiniteFloat, Tag
from scipy.special import softmax

from curvote.base.classes import Classes
from curvote.base.validate import FloatArray
from curvote.chain.settings import Strict
from curvote.data import columns
from curvote.data.columns import ClientColumns, Feature, Paths

Shares = Literal["equal", "rank"]

SIMULATED = True
_DIRECTIONS = 1024  # of the quadrature around each centre
_FAR = 5.0  # standard deviations beyond the circle: 1 record in a million lies outside


class Parameters(Strict):
    """Settings of ``source:``: number, width and shares of the classes.

    ``sigma`` is a number, or `2/K` for two over the number of classes. ``shares`` are
    equal, or those of class j are proportional to 1/(j + 1) (rank).
    """

    name: Literal["circle"] = "circle"
    n_classes: Annotated[int, Field(ge=2, le=1000, strict=True)] = 8
    sigma: Annotated[
        Annotated[Literal["2/K"], Tag("word")]
        | Annotated[FiniteFloat, Field(gt=0), Tag("number")],
        Discriminator(lambda value: "word" if isinstance(value, str) else "number"),
    ] = "2/K"
    shares: Shares = "equal"

    @property
    def deviation(self) -> float:
        """Return the standard deviation as a number."""
        return 2 / self.n_classes if isinstance(self.sigma, str) else self.sigma


files, size = columns.no_files, columns.no_size


def width(_parameters: Parameters) -> int:
    """Return the two coordinates."""
    return 2


def classes(parameters: Parameters) -> Classes:
    """Return the classes "0" to "K - 1", counted around the circle."""
    return Classes(map(str, range(parameters.n_classes)))


def facts(parameters: Parameters, _paths: Paths | None = None) -> dict[str, Any]:
    """Return the public metadata of the records as plain JSON values."""
    law = parameters.n_classes, parameters.deviation, parameters.shares
    reach = 1 + _FAR * parameters.deviation
    why = f"the unit circle and {_FAR:g} standard deviations"
    features = [Feature(axis, "number", -reach, reach, why) for axis in ("x", "y")]
    return {
        "title": f"{parameters.n_classes} Gaussians on a circle (VEC section 5.1)",
        "grid": [1, 2],
        "domain": [1.0, 2.0],
        "unit": "number",
        "classes": list(classes(parameters)),
        "features": [feature.to_json() for feature in features],
        "simulated": SIMULATED,
        "rows": None,
        "counts": {},
        "notes": [],
        "record": "record",
        "bayes_error": 1 - bayes_accuracy(*law),
    }


def clients(parameters: Parameters, n: int, generator: Generator) -> ClientColumns:
    """Return ``n`` new clients: client_id, label, group (n,) and curve (n, 2)."""
    k = parameters.n_classes
    label = generator.choice(k, size=n, p=class_shares(k, parameters.shares))
    noise = generator.standard_normal((n, 2))
    return columns.client_columns(
        centres(k)[label] + parameters.deviation * noise, label
    )


def eta(parameters: Parameters, x: FloatArray) -> FloatArray:
    """Return the regression functions P(Y = j | x), (n, K), at ``x`` (n, 2)."""
    k, variance = parameters.n_classes, parameters.deviation**2
    # All centres are as far from the origin: |x - centre|^2 differs by 2 x'centre only.
    logits = x @ centres(k).T / variance + np.log(class_shares(k, parameters.shares))
    return np.asarray(softmax(logits, axis=1))


def centres(n_classes: int) -> FloatArray:
    """Return the centres (K, 2) of the classes."""
    angle = 2 * np.pi * np.arange(n_classes) / n_classes
    return np.column_stack([np.cos(angle), np.sin(angle)])


def class_shares(n_classes: int, shares: Shares) -> FloatArray:
    """Return the probability of each class (K,)."""
    weights = 1 / np.arange(1, n_classes + 1) ** (shares == "rank")
    return np.asarray(weights / weights.sum())


@lru_cache
def bayes_accuracy(n_classes: int, sigma: float, shares: Shares = "equal") -> float:
    """Return E max_j P(Y = j | X), the best possible accuracy, to better than 1e-5.

    The best rule gives class j the convex polygon in which it is the likeliest. Seen
    from its centre in direction u, that is an interval of distances, which a Gaussian
    hits with probability exp(-a^2 / 2 sigma^2) - exp(-b^2 / 2 sigma^2): what is left
    is one integral over directions, taken by the trapezoid rule.
    """
    share = class_shares(n_classes, shares)
    if shares == "equal":  # all polygons are alike
        return _own_polygon_probability(0, share, sigma)
    hits = [_own_polygon_probability(place, share, sigma) for place in range(n_classes)]
    return float(np.array(hits) @ share)


def _own_polygon_probability(place: int, share: FloatArray, sigma: float) -> float:
    """Return the probability that a record of a class lies in its own polygon."""
    middle = centres(len(share))
    rivals = np.arange(len(share)) != place
    towards = middle[rivals] - middle[place]
    gain = 2 * sigma**2 * np.log(share[place] / share[rivals])
    edge = ((towards**2).sum(axis=1) + gain) / 2
    angle = 2 * np.pi * (np.arange(_DIRECTIONS) + 0.5) / _DIRECTIONS
    along = np.column_stack([np.cos(angle), np.sin(angle)]) @ towards.T
    with np.errstate(divide="ignore"):
        distance = edge / along
    end = np.where(along > 0, distance, np.inf).min(axis=1).clip(min=0)
    begin = np.where(along < 0, distance, 0.0).max(axis=1).clip(min=0)
    mass = np.exp(-0.5 * (begin / sigma) ** 2) - np.exp(-0.5 * (end / sigma) ** 2)
    return float(mass.clip(min=0).mean())
