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
from curvote.named_columns import matrix
from curvote.protocols.roles import played
from curvote.representation.encoding import Encoded, Encoding
from curvote.utility.engines.linear import LinearModel

Array = NDArray[np.float64]
# Coefficients beyond so many public scales from the public centre are clipped.
REACH = 3


@dataclass(frozen=True)
class Sent:
    """A classifier of the d numbers that a client would send: c1, ..., cd.

    ``bounds`` (d, 2) are public: those of z, or what the pipeline states.
    """

    model: Any
    encoding: Encoding
    names: tuple[str, ...]
    bounds: Array

    @property
    def of_z(self) -> bool:
        """Whether z is judged, and not the coefficients that it is made of."""
        return self.encoding.feature_map == "rescaled"

    def numbers(self, encoded: Encoded) -> Array:
        """Return what the classifier judges, (n, d)."""
        return encoded.z if self.of_z else encoded.coefficients


def sent(found: CurveClassifier) -> Sent:
    """Return a classifier of curves as one of what is sent.

    UserError: what is sent has no public bounds.
    """
    encoding, coef = Encoding.from_json(found.encoding), np.asarray(found.coef)
    if encoding.feature_map == "inner_products":
        coef = encoding.projection.gram @ coef
    negative, positive = found.classes_
    model = LinearModel(coef, float(found.intercept), (negative, positive))
    names = tuple(f"c{place}" for place in range(1, len(coef) + 1))
    return Sent(model, encoding, names, _bounds(encoding))


def _bounds(encoding: Encoding) -> Array:
    constants = encoding.constants
    if encoding.feature_map == "rescaled" and encoding.rescale in _BOUNDED:
        return np.tile([-1.0, 1.0], (encoding.d, 1))
    if "lower" in constants:
        return _columns(encoding.d, constants["lower"], constants["upper"])
    if "scale" in constants:
        reach = REACH * np.asarray(constants["scale"])
        centre = np.asarray(constants["centre"])
        if encoding.feature_map == "rescaled":
            return np.tile([-float(REACH), float(REACH)], (encoding.d, 1))
        return _columns(encoding.d, centre - reach, centre + reach)
    raise UserError(
        "this pipeline states no public bounds of its coefficients (rescale:"
        f" {encoding.rescale}): no noise on them can be measured. State centre and"
        " scale, or lower and upper, and run it again."
    )


_BOUNDED = ("tanh", "max_abs", "min_max")


def _columns(d: int, low: Any, high: Any) -> Array:
    return np.column_stack([np.broadcast_to(low, d), np.broadcast_to(high, d)])


def of_test_clients(view: Any, found: Sent) -> tuple[Array, NDArray[np.int64]]:
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
    mine = played(rows, params, 0)["test"]
    numbers = rows["z"] if found.of_z else rows["coefficients"]
    return numbers[mine], (np.asarray(rows["label"])[mine] > 0).astype(np.int64)


def of_table(frame: Any, model: CurveClassifier, found: Sent) -> Array:
    """Return the numbers of curves in a table's columns, (n, d)."""
    return found.numbers(found.encoding.encode(matrix(frame, model.columns)))
