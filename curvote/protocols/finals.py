"""The model to keep of a run's cell: just what its scores were measured of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Place
from curvote.chain.view import View
from curvote.classes import Classes
from curvote.classifier import Linear
from curvote.named_columns import grid_names
from curvote.protocols.classifiers import line_in
from curvote.protocols.combining import combined, turned
from curvote.protocols.mrma.tables import variant
from curvote.protocols.questions import one_against_rest
from curvote.representation.encoding import Encoding

if TYPE_CHECKING:
    from curvote.curve_classifier import CurveClassifier

Array = NDArray[np.float64]
Line = tuple[Array, Any]
FIRST: Place = (0,)


def encoding_of(view: View, place: Place = FIRST) -> Encoding:
    """Return a cell's encoding, volunteers' constants and the feature map filled in."""
    rows = view.columns("project", "constants", place)
    constants = dict(zip(rows["name"], rows["value"], strict=True))
    described = Encoding.from_json(view.facts("project")["encoding"])
    chosen = view.setting("project.judge")
    return replace(described, constants=constants, feature_map=chosen)


def linear(view: View, line: Line, place: Place = FIRST) -> CurveClassifier:
    """Return a linear classifier of z as one of raw curves."""
    from curvote.curve_classifier import CurveClassifier  # scikit-learn takes a second

    encoding = encoding_of(view, place)
    made = Linear(*line, encoding.feature_map)
    classes = Classes(view.facts("project")["classes"])
    return CurveClassifier.of(encoding, columns_of(view), made, classes)


def columns_of(view: View, stage: str = "project") -> list[str]:
    """Return the columns of raw records: the features' names, or the grid points.

    ``stage`` is one that tells what the source told it.
    """
    facts = view.facts(stage)
    features = [feature["name"] for feature in facts.get("features") or ()]
    return features or grid_names(facts["grid"])


def one(view: View) -> CurveClassifier:
    """Return the one classifier that the server decoded."""
    return linear(view, line_in(view.columns("aggregate", "classifier")))


def ensemble(
    view: View, code: Callable[[int], Array] = one_against_rest
) -> CurveClassifier:
    """Return what the weak classifiers make, reversed and weighted.

    ``code`` returns the questions about K classes that they answer (`questions`).
    """
    weak = variant(view.columns("train", "weak"), "weak")
    made, n_classes = view.columns("aggregate", "ensemble"), _number(view)
    coef, intercept = combined(code(n_classes), weak, turned(made))
    return linear(view, line_in({"coef": coef, "intercept": intercept}))


def _number(view: View) -> int:
    return len(view.facts("project")["classes"])


def history(view: View) -> CurveClassifier:
    """Return the ensemble of the cell's arrival."""
    rows = view.columns("update", "history")
    return linear(view, (rows["coef"][-1], float(rows["intercept"][-1])))
