"""Encoding of curves into the numbers of a report, and linear classifiers of them.

The formulas are MRMA section 5.1; ``min_max`` takes public bounds and clips,
because bounds taken from the record itself leave [-1, 1] and are not private (item 13).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.curves.basis import VOLUNTEERS_BASES, Array, Projection

Counts = NDArray[np.int64]

RESCALING_CONSTANTS = {
    "tanh": ("centre", "scale"),
    "max_abs": (),
    "min_max": ("lower", "upper"),
    "none": (),
    "standard": ("centre", "scale"),
}
# Values of these have no bounds: only a mechanism that takes directions hides them.
UNBOUNDED_RESCALINGS = ("none", "standard")


def rescale(
    name: str, c: ArrayLike, constants: Mapping[str, ArrayLike]
) -> tuple[Array, Counts]:
    """Return z (n, d) and the number of clipped values of each client.

    ``constants`` holds exactly what ``RESCALING_CONSTANTS[name]`` lists, each (d,) or a
    number. ``none`` leaves the coefficients as they are and ``standard`` centres and
    scales them; both stay unbounded, which only protocols that report directions can
    hide. ``tanh`` takes the tanh of that, ``max_abs`` divides each record by its
    largest magnitude, and ``min_max`` maps public bounds to [-1, 1] and clips.
    """
    names = RESCALING_CONSTANTS[validate.one_of(RESCALING_CONSTANTS, rescale=name)]
    if set(constants) != set(names):
        wanted = ", ".join(names) or "no constants"
        listed = ", ".join(sorted(constants)) or "none"
        raise UserError(f"rescale {name} takes {wanted}; given: {listed}.")
    values = _check_coefficients(c)
    clip_counts = np.zeros(len(values), dtype=np.int64)
    if name == "none":
        return values, clip_counts
    if name == "max_abs":
        largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
        return values / np.where(largest > 0, largest, 1.0), clip_counts
    first, second = (
        _broadcast_constant(values.shape[1], **{key: constants[key]}) for key in names
    )
    if name == "min_max":
        with np.errstate(over="ignore"):
            width = second - first
        wrong = ~((width > 0) & (width < np.inf))
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise UserError(
                f"lower is {first[i]:g} and upper {second[i]:g} for coordinate {i};"
                " lower must be below upper, and their distance finite."
            )
        clipped = np.clip(values, first, second)
        z = np.asarray(2 * ((clipped - first) / width) - 1)
        return z, (clipped != values).sum(axis=1, dtype=np.int64)
    if not (second > 0).all():
        i = int(np.flatnonzero(~(second > 0))[0])
        raise UserError(
            f"scale is {second[i]:g} for coordinate {i}; it must be above 0."
        )
    if name == "standard":
        return np.asarray((values - first) / second), clip_counts
    with np.errstate(over="ignore"):  # tanh of an overflow is the right +1 or -1
        return np.asarray(np.tanh((values - first) / second)), clip_counts


def data_bounds(c: ArrayLike) -> dict[str, Array]:
    """Return the least and largest values of the data: not private.

    **Not private**, whatever noise follows: studies that repeat a paper only. A
    constant coordinate gets a width of 1.
    """
    values = _check_coefficients(c)
    lower, upper = values.min(axis=0), values.max(axis=0)
    return {"lower": lower, "upper": np.where(upper > lower, upper, lower + 1)}


def volunteer_constants(c: ArrayLike, common: bool = False) -> tuple[Array, Array]:
    """Return centre and scale of public records ``c`` (n, d).

    A ``common`` scale is the root mean square of all: components keep the share of the
    variance that makes them principal. The records must be public: those of volunteers
    who take no part in anything else.
    """
    values = _check_coefficients(c)
    if len(values) < 2:
        raise UserError(
            f"{len(values)} volunteers; a standard deviation takes at least 2."
        )
    centre, scale = values.mean(axis=0), values.std(axis=0, ddof=1)
    constant = (values == values[0]).all(axis=0) | ~(scale > 0)
    if constant.any():
        raise UserError(
            f"coordinate {int(np.flatnonzero(constant)[0])} is the same for all"
            f" {len(values)} volunteers, so its scale would be 0; take more volunteers"
            " or state centre and scale."
        )
    if common:
        scale = np.full_like(scale, np.sqrt(np.mean(scale**2)))
    return centre, scale


def _check_coefficients(c: ArrayLike) -> Array:
    values = validate.finite(coefficients=c)
    if values.ndim != 2:
        raise UserError(f"coefficients have shape {values.shape}; they must be (n, d).")
    return values


def _broadcast_constant(d: int, /, **named: ArrayLike) -> Array:
    ((name, value),) = named.items()
    array = validate.finite(**{name: value})
    if array.shape not in ((), (1,), (d,)):
        raise UserError(
            f"{name} has shape {array.shape}; it must be a number or one for each of"
            f" the {d} coordinates."
        )
    return np.broadcast_to(array, (d,))


SMOOTH = "smooth"
FEATURE_MAPS = ("rescaled", "coefficients", "inner_products")


def decision_sign(decision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return -1/+1 for each score; a score of 0 is -1."""
    return np.where(decision > 0, 1.0, -1.0)


def predict_indices(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indices of the classes (n,) with the largest scores.

    One of (n,) or (n, 1): class 1 above 0; (n, K): the largest, the first of equal
    ones.
    """
    if scores.ndim == 1 or scores.shape[1] == 1:
        return (scores.reshape(len(scores)) > 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1))


@dataclass(frozen=True, eq=False)
class Linear:
    """Scores features @ coef + intercept of classes, tied to their feature map.

    ``coef`` is [d] and ``intercept`` a number for two classes, [K, d] and [K] for more;
    ``feature_map`` says which features are judged: ``rescaled`` (the z in [-1, 1] that
    clients report), ``coefficients`` (those of the raw curve) or ``inner_products``
    (the raw curve's with each basis function). Values that are not finite and other
    shapes or names are a UserError.
    """

    coef: NDArray[np.float64]
    intercept: Any
    feature_map: str

    def __post_init__(self) -> None:
        validate.one_of(FEATURE_MAPS, feature_map=self.feature_map)
        coef = validate.finite(coef=self.coef).copy()
        if coef.ndim not in {1, 2} or not coef.size:
            raise UserError(
                f"coef has shape {coef.shape}; it must be a vector, [d], or one for"
                " each class, [K, d]."
            )
        intercept = validate.finite(intercept=self.intercept)
        if intercept.shape != coef.shape[:-1]:
            raise UserError(
                f"intercept has shape {intercept.shape}; give one number for each line."
            )
        coef.setflags(write=False)
        object.__setattr__(self, "coef", coef)
        constant = intercept if intercept.ndim else float(intercept)
        object.__setattr__(self, "intercept", constant)

    def decision(self, features: ArrayLike) -> NDArray[np.float64]:
        """Return the scores [n] or [n, K] of ``features`` [n, d]."""
        values, d = validate.finite(features=features), self.coef.shape[-1]
        if values.ndim != 2 or values.shape[1] != d:
            raise UserError(
                f"features has shape {values.shape}; this classifier judges rows of"
                f" {d} values, [n, {d}]."
            )
        return np.asarray(values @ self.coef.T + self.intercept)


@dataclass(frozen=True)
class Encoded:
    """Encoded curves: coefficients (n, d), z in [-1, 1]^d, clipped values."""

    coefficients: Array
    z: Array
    clipped: NDArray[np.int64]


@dataclass(frozen=True)
class Encoding:
    """A projection, a rescaling with public constants, and a feature map.

    ``feature_map`` is ``"rescaled"`` (a classifier judges z, the numbers that were
    reported), ``"coefficients"`` (it judges the raw coefficients, as MRMA section 6) or
    ``"inner_products"``, those of the raw curve with each basis function: what MRMA's
    Method I (section 5.2) judges although it was trained on coefficients. ``smooth``
    says that a client smooths a curve at times of its own, or with missing points, onto
    the grid (`curvote.curves.smoothing`).
    """

    projection: Projection
    rescale: str = "tanh"
    constants: Mapping[str, Array] = field(default_factory=dict)
    feature_map: str = "rescaled"
    smooth: bool = False

    def __post_init__(self) -> None:
        validate.one_of(FEATURE_MAPS, judge=self.feature_map)

    @property
    def d(self) -> int:
        """Number of coefficients."""
        return int(self.projection.matrix.shape[0])

    def encode(self, curves: Array) -> Encoded:
        """Return the encoded form of ``curves`` (n, T); NaN or infinity: UserError."""
        coefficients = self.projection.apply(curves)
        return Encoded(coefficients, *self.rescaled(coefficients))

    def rescaled(self, coefficients: Array) -> tuple[Array, NDArray[np.int64]]:
        """Return z and the number of clipped values of each client."""
        return rescale(self.rescale, coefficients, self.constants)

    def features(self, curves: Array) -> Array:
        """Return the features that a classifier sees of ``curves``, (n, d)."""
        encoded = self.encode(curves)
        arrays = encoded.coefficients, encoded.z, self.projection.gram
        return classifier_features(self.feature_map, *arrays)

    def completed(self, read: Callable[[str], Mapping[str, Any]]) -> Encoding:
        """Return the encoding with what volunteers decided, by reading its tables."""
        rows, projection = read("constants"), self.projection
        constants = dict(zip(rows["name"], rows["value"], strict=True))
        if projection.name in VOLUNTEERS_BASES:
            projection = replace(projection, matrix=read("basis_rows")["value"])
        return replace(self, projection=projection, constants=constants)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values from which `from_json` builds an equal encoding."""
        projection = self.projection
        more = {
            "derivative": projection.derivative,
            "channels": list(projection.channels),
            "irregular": SMOOTH if self.smooth else None,
        }
        return {name: value for name, value in more.items() if value} | {
            "basis": projection.name,
            "size": projection.size,
            "order": projection.order,
            "domain": [float(end) for end in projection.domain],
            "matrix": projection.matrix.tolist(),
            "gram": projection.gram.tolist(),
            "rescale": self.rescale,
            "constants": {k: np.asarray(v).tolist() for k, v in self.constants.items()},
            "judge": self.feature_map,
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Encoding:
        """Build the encoding that `to_json` wrote."""
        a, b = facts["domain"]
        matrix, gram = (
            np.asarray(facts[name], dtype=np.float64) for name in ("matrix", "gram")
        )
        named = facts["basis"], facts["size"], facts["order"]
        more = facts.get("derivative", 0), tuple(facts.get("channels", ()))
        projection = Projection(matrix, gram, (float(a), float(b)), *named, *more)
        constants = {
            name: np.asarray(value, dtype=np.float64)
            for name, value in facts["constants"].items()
        }
        smooth = facts.get("irregular") == SMOOTH
        return cls(projection, facts["rescale"], constants, facts["judge"], smooth)


def classifier_features(
    feature_map: str, coefficients: Array, z: Array, gram: Array
) -> Array:
    """Return the features that a feature map takes from an encoding."""
    if feature_map == "inner_products":
        return coefficients @ gram
    return z if feature_map == "rescaled" else coefficients
