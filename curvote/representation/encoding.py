"""Encoding of curves: from a curve to the numbers that a client may report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.classifier import FEATURE_MAPS
from curvote.representation.basis import Projection
from curvote.representation.rescale import rescale

Array = NDArray[np.float64]


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
    Method I (section 5.2) judges although it was trained on coefficients.
    """

    projection: Projection
    rescale: str = "tanh"
    constants: Mapping[str, Array] = field(default_factory=dict)
    feature_map: str = "rescaled"

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
        return self.judged(self.encode(curves))

    def judged(self, encoded: Encoded) -> Array:
        """Return the features of ``encoded`` that a classifier is applied to."""
        gram = self.projection.gram
        return classifier_features(
            self.feature_map, encoded.coefficients, encoded.z, gram
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values from which `from_json` builds an equal encoding."""
        projection = self.projection
        return {
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
        projection = Projection(
            matrix=np.asarray(facts["matrix"], dtype=np.float64),
            gram=np.asarray(facts["gram"], dtype=np.float64),
            domain=(float(a), float(b)),
            name=facts["basis"],
            size=facts["size"],
            order=facts["order"],
        )
        constants = {
            name: np.asarray(value, dtype=np.float64)
            for name, value in facts["constants"].items()
        }
        return cls(projection, facts["rescale"], constants, facts["judge"])


def classifier_features(
    feature_map: str, coefficients: Array, z: Array, gram: Array
) -> Array:
    """Return the features that a feature map takes from an encoding."""
    if feature_map == "inner_products":
        return coefficients @ gram
    return z if feature_map == "rescaled" else coefficients
