"""curvote's own classifiers of curves, as models of the coefficients that are sent.

A client would send its coefficients, noised, and the server would judge those; a
linear classifier of z, or of the coefficients, is one of what the server then has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.curve_classifier import CurveClassifier
from curvote.errors import UserError
from curvote.named_columns import record_matrix
from curvote.protocols.roles import roles_of_table
from curvote.representation.encoding import Encoded, Encoding
from curvote.utility.engines.linear import LinearModel

Array = NDArray[np.float64]
# Coefficients beyond so many public scales from the public centre are clipped.
REACH = 3


@dataclass(frozen=True)
class CoefficientModel:
    """Classifier of the d numbers that a client would send: c1, ..., cd.

    ``bounds`` (d, 2) are public: those of z, or what the pipeline states.
    """

    model: Any
    encoding: Encoding
    names: tuple[str, ...]
    bounds: Array

    @property
    def uses_z(self) -> bool:
        """Whether the model reads z, not the coefficients."""
        return self.encoding.feature_map == "rescaled"

    def numbers(self, encoded: Encoded) -> Array:
        """Return the numbers that the classifier reads, (n, d)."""
        return encoded.z if self.uses_z else encoded.coefficients


def coefficient_model(classifier: CurveClassifier) -> CoefficientModel:
    """Return a classifier of curves as one of the coefficients sent.

    UserError: what is sent has no public bounds.
    """
    encoding, coef = (
        Encoding.from_json(classifier.encoding),
        np.asarray(classifier.coef),
    )
    if encoding.feature_map == "inner_products":
        coef = encoding.projection.gram @ coef
    negative, positive = classifier.classes_
    model = LinearModel(coef, float(classifier.intercept), (negative, positive))
    names = tuple(f"c{place}" for place in range(1, len(coef) + 1))
    return CoefficientModel(model, encoding, names, _coefficient_bounds(encoding))


def _coefficient_bounds(encoding: Encoding) -> Array:
    """Return the public bounds of the numbers; without any a UserError."""
    constants = encoding.constants
    if encoding.feature_map == "rescaled" and encoding.rescale in _BOUNDED:
        return np.tile([-1.0, 1.0], (encoding.d, 1))
    if "lower" in constants:
        return _bound_columns(encoding.d, constants["lower"], constants["upper"])
    if "scale" in constants:
        reach = REACH * np.asarray(constants["scale"])
        centre = np.asarray(constants["centre"])
        if encoding.feature_map == "rescaled":
            return np.tile([-float(REACH), float(REACH)], (encoding.d, 1))
        return _bound_columns(encoding.d, centre - reach, centre + reach)
    raise UserError(
        "this pipeline states no public bounds of its coefficients (rescale:"
        f" {encoding.rescale}): no noise on them can be measured. State centre and"
        " scale, or lower and upper, and run it again."
    )


_BOUNDED = ("tanh", "max_abs", "min_max")


def _bound_columns(d: int, low: Any, high: Any) -> Array:
    """Return bounds (d, 2) from scalars or arrays."""
    return np.column_stack([np.broadcast_to(low, d), np.broadcast_to(high, d)])


def test_client_records(
    view: Any, model: CoefficientModel
) -> tuple[Array, NDArray[np.int64]]:
    """Return the numbers and labels of a study's own test clients, (n, d) and (n,).

    UserError: in production nobody may read them, or the pipeline has none.
    """
    if view.settings.production:
        raise UserError(
            "this pipeline is in production: its clients' own records are not to be"
            " read, not even for this. Give records of volunteers: --data FILE.csv"
        )
    if not view.holds("project", "encoded"):
        raise UserError("this pipeline keeps no records of its own; give --data FILE.")
    rows = view.columns("project", "encoded")
    params = {name: view.setting(name) for name in ("seed", "clients")}
    params["source.groups"] = getattr(view.settings.source, "groups", None)
    test_mask = roles_of_table(rows, params, 0)["test"]
    numbers = rows["z"] if model.uses_z else rows["coefficients"]
    return numbers[test_mask], (np.asarray(rows["label"])[test_mask] > 0).astype(
        np.int64
    )


def table_records(
    frame: Any, model: CurveClassifier, coefficients: CoefficientModel
) -> Array:
    """Return the numbers of curves in a table's columns, (n, d)."""
    return coefficients.numbers(
        coefficients.encoding.encode(record_matrix(frame, model.columns))
    )
