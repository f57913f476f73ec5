"""Simulations of records: numbers of known law, whose labels have known chances.

`UNIFORM` spreads records evenly over [-1, 1]^d; the label's logit is ``slope`` times
the first number.

`POSTERIOR_DRIFT` has a target server and sources with another label law (DTK section
6.1). Records are even on [0, 1]^2. The labels of all servers have the same boundary;
those of the sources are clearer than the target's (gamma < 1) or less so.

`CIRCLE` has K Gaussian classes on the unit circle (VEC section 5.1). Class j has its
centre at the angle 2 pi j / K and the same standard deviation in both coordinates. The
regression functions and the Bayes error are known.

`CLASSES` are K Gaussian classes in d dimensions, equally frequent. Every class has the
identity as its covariance matrix. Its mean is a corner of a regular simplex, given by
its cosine coefficients: coordinate j of the mean of class k is c cos(pi j (2k + 1) /
2K), j = 1, 2, ..., at most K - 1 of them. Where d is larger, the other coordinates are
noise; where it is smaller, the smoothest ones remain. The factor c makes ``distance``
the root mean square of the distances between two means, which are all alike for d at
least K - 1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Discriminator, Field, FiniteFloat, Tag, model_validator
from scipy.fft import dct
from scipy.special import expit, ndtri, softmax

from curvote.base.classes import Classes
from curvote.base.validate import FloatArray
from curvote.chain.settings import Count, Strict, WholeNumber
from curvote.data import columns
from curvote.data.columns import ClientColumns, Facts, Feature

_FAR = 5.0  # standard deviations beyond all means: 1 record in a million lies outside


class _Records(columns.Simulation):
    """Records of numbers, each of which is a feature with public bounds."""

    def features(self, parameters: Any) -> list[Feature]:
        """Return the numbers of a record, in their order."""
        raise NotImplementedError

    def width(self, parameters: Any) -> int:
        return len(self.features(parameters))

    def facts(self, parameters: Any, _paths: Any = None) -> Facts:
        features = [feature.to_json() for feature in self.features(parameters)]
        d = len(features)
        space = {"grid": list(range(1, d + 1)), "domain": [1.0, float(d)]}
        numbers = {"unit": "number", "features": features, **space}
        return numbers | super().facts(parameters)


class _Gaussians(_Records):
    """K Gaussian classes, called "0" to "K - 1"."""

    def classes(self, parameters: Any) -> Classes:
        """Return the names of the classes."""
        return Classes(map(str, range(parameters.n_classes)))

    def about(self, parameters: Any) -> Facts:
        return {"classes": list(self.classes(parameters)), "record": "record"}


class UniformParameters(Strict, title="Parameters"):
    """Settings of ``source:``: how many numbers, and the label's slope."""

    name: Literal["uniform"] = "uniform"
    d: WholeNumber = 1
    slope: FiniteFloat = 4.0


class _Uniform(_Records):
    Parameters = UniformParameters

    def features(self, parameters: UniformParameters) -> list[Feature]:
        names, why = [f"z{j + 1}" for j in range(parameters.d)], "drawn from [-1, 1]"
        return [Feature(name, "number", -1, 1, why) for name in names]

    def about(self, parameters: UniformParameters) -> Facts:
        title = "Uniform records (MRMA figures 1 and A.6)"
        return {"title": title, "classes": ["-1", "+1"], "slope": parameters.slope}

    def clients(
        self, parameters: UniformParameters, n: int, generator: Generator
    ) -> ClientColumns:
        """Return ``n`` new clients: client_id, label, group (n,) and curve (n, d)."""
        values = generator.uniform(-1, 1, size=(n, parameters.d))
        chance = positive_probability(values[:, 0], parameters.slope)
        labels = (generator.random(n) < chance).astype(np.int64)
        return columns.client_columns(values, labels)


def positive_probability(first: FloatArray, slope: float) -> FloatArray:
    """Return eta(z) = P(Y = +1 | z), which the first number decides alone."""
    return np.asarray(expit(slope * first))


TARGET = "target"
BAYES_ERROR = 9 / 200 + math.log(4) / 40  # E min(eta_T, 1 - eta_T), integrated by hand
_FEATURES = [
    Feature(name, "number", 0, 1, "drawn from [0, 1]") for name in ("x1", "x2")
]
_NOTES = (
    "Sources have the target's records and its decision boundary, not its labels' law.",
    "The least possible error is that on the target's records.",
)


class PosteriorDriftParameters(Strict, title="Parameters"):
    """Settings of ``source:``: how many servers, sizes, and label drift."""

    name: Literal["posterior_drift"] = "posterior_drift"
    n: WholeNumber | None = None
    total: WholeNumber | None = None
    m: Count = 1
    gamma: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    test: Count = 1000

    @model_validator(mode="after")
    def _check_size(self) -> PosteriorDriftParameters:
        if (self.n is None) is (self.total is None):
            raise ValueError("give n (records of each server) or total (of all)")
        if self.total is not None and self.total <= self.m:
            raise ValueError(f"{self.total} records leave none for some of the servers")
        return self


class _PosteriorDrift(_Records):
    Parameters = PosteriorDriftParameters
    features = staticmethod(columns.always(_FEATURES))

    def size(self, parameters: PosteriorDriftParameters) -> int:
        """Return the number of records of all servers."""
        return sum(self.servers(parameters).values())

    def servers(self, parameters: PosteriorDriftParameters) -> dict[str, int]:
        """Return each server's number of records, the target first."""
        names = [TARGET, *(f"source{k + 1}" for k in range(parameters.m))]
        least, more = divmod(parameters.total or 0, len(names))
        sizes = {x: parameters.n or least + (at < more) for at, x in enumerate(names)}
        return sizes | {TARGET: sizes[TARGET] + parameters.test}

    def about(self, parameters: PosteriorDriftParameters) -> Facts:
        return {
            "title": "Simulated posterior drift (DTK section 6.1)",
            "classes": ["0", "1"],
            "servers": self.servers(parameters),
            "bayes_error": BAYES_ERROR,
            "notes": [*_NOTES],
        }

    def clients(
        self, parameters: PosteriorDriftParameters, _n: int, generator: Generator
    ) -> ClientColumns:
        """Return the records of all ``servers``, a server after the other.

        Columns client_id, label, group (n,), the server's place, and curve (n, 2).
        Neither the records nor the uniforms behind the labels depend on ``gamma``.
        """
        sizes = [*self.servers(parameters).values()]
        samples = np.concatenate([generator.random((n, 3)) for n in sizes])
        group = np.repeat(np.arange(len(sizes)), sizes)
        x, chance = samples[:, :2], samples[:, 2]
        gamma = np.where(group == 0, 1.0, parameters.gamma)
        label = (chance < regression(x, gamma)).astype(np.int64)
        return columns.client_columns(x, label, group=group)


def regression(x: FloatArray, gamma: float | FloatArray) -> FloatArray:
    """Return P(Y = 1 | x) for x (n, 2), of a server with exponent ``gamma``.

    Exponent 1 is the target's: eta_T = 1/2 + s |u v|^(1/4) with u, v = x - 1/2 and s
    the sign of u v, at least 0 and at most 1.
    """
    product = np.prod(x - 0.5, axis=1)
    away = np.minimum(np.abs(product) ** 0.25, 0.5)
    return np.asarray(np.clip(0.5 + np.sign(product) * away**gamma, 0.0, 1.0))


Shares = Literal["equal", "rank"]
_DIRECTIONS = 1024  # of the quadrature around each centre


class CircleParameters(Strict, title="Parameters"):
    """Settings of ``source:``: number, width and shares of the classes."""

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


class _Circle(_Gaussians):
    Parameters = CircleParameters

    def features(self, parameters: CircleParameters) -> list[Feature]:
        reach = 1 + _FAR * parameters.deviation
        why = f"the unit circle and {_FAR:g} standard deviations"
        return [Feature(axis, "number", -reach, reach, why) for axis in ("x", "y")]

    def about(self, parameters: CircleParameters) -> Facts:
        law = parameters.n_classes, parameters.deviation, parameters.shares
        title = f"{parameters.n_classes} Gaussians on a circle (VEC section 5.1)"
        least = {"title": title, "bayes_error": 1 - bayes_accuracy(*law)}
        return super().about(parameters) | least

    def clients(
        self, parameters: CircleParameters, n: int, generator: Generator
    ) -> ClientColumns:
        """Return ``n`` new clients: client_id, label, group (n,) and curve (n, 2)."""
        k = parameters.n_classes
        label = generator.choice(k, size=n, p=class_shares(k, parameters.shares))
        noise = generator.standard_normal((n, 2))
        records = centres(k)[label] + parameters.deviation * noise
        return columns.client_columns(records, label)

    def eta(self, parameters: CircleParameters, x: FloatArray) -> FloatArray:
        """Return the regression functions P(Y = j | x), (n, K), at ``x`` (n, 2)."""
        k, variance = parameters.n_classes, parameters.deviation**2
        # All centres are as far from the origin: |x - centre|^2 differs by 2 x'centre.
        log_shares = np.log(class_shares(k, parameters.shares))
        return np.asarray(softmax(x @ centres(k).T / variance + log_shares, axis=1))


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


_POINTS = 13  # 2^13 points of a Sobol sequence around each mean


class ClassesParameters(Strict, title="Parameters"):
    """Settings of ``source:``: classes, dimensions and distance of means."""

    name: Literal["simulated-classes"] = "simulated-classes"
    n_classes: Annotated[int, Field(ge=2, le=128, strict=True)] = 10
    d: WholeNumber = 8
    distance: Annotated[FiniteFloat, Field(gt=0)] = 6.3


class _Classes(_Gaussians):
    Parameters = ClassesParameters

    def features(self, parameters: ClassesParameters) -> list[Feature]:
        law = parameters.n_classes, parameters.d, parameters.distance
        reach = float(np.abs(class_means(*law)).max()) + _FAR
        why = f"the farthest mean and {_FAR:g} standard deviations"
        names = [f"x{j + 1}" for j in range(parameters.d)]
        return [Feature(name, "number", -reach, reach, why) for name in names]

    def about(self, parameters: ClassesParameters) -> Facts:
        law = parameters.n_classes, parameters.d, parameters.distance
        title = f"{parameters.n_classes} Gaussian classes"
        least = {"title": title, "bayes_error": bayes_error(*law)}
        return super().about(parameters) | least

    def clients(
        self, parameters: ClassesParameters, n: int, generator: Generator
    ) -> ClientColumns:
        """Return ``n`` new clients: client_id, label, group (n,) and curve (n, d)."""
        law = parameters.n_classes, parameters.d, parameters.distance
        label = generator.integers(parameters.n_classes, size=n)
        noise = generator.standard_normal((n, parameters.d))
        return columns.client_columns(class_means(*law)[label] + noise, label)

    def eta(self, parameters: ClassesParameters, x: FloatArray) -> FloatArray:
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
    from scipy.stats import qmc

    middle = class_means(n_classes, min(d, n_classes - 1), distance)
    uniform = qmc.Sobol(middle.shape[1], scramble=False).random_base2(_POINTS)
    normal = ndtri(uniform + 0.5 / len(uniform))
    errors = [
        1 - softmax(_class_scores(mean + normal, middle), axis=1).max(axis=1).mean()
        for mean in middle
    ]
    return float(np.mean(errors))


UNIFORM = _Uniform()
POSTERIOR_DRIFT = _PosteriorDrift()
CIRCLE = _Circle()
CLASSES = _Classes()
