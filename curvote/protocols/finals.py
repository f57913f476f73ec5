"""Models to keep of a run's cell, and the outcomes of production."""

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
from curvote.protocols.classifiers import classifier_line
from curvote.protocols.combining import combine_lines, signed_weights
from curvote.protocols.mrma.tables import lines_of_variant
from curvote.protocols.questions import one_against_rest_code
from curvote.representation.encoding import Encoding

if TYPE_CHECKING:
    from curvote.curve_classifier import CurveClassifier

Array = NDArray[np.float64]
LinearModel = tuple[Array, Any]
FIRST_REPETITION: Place = (0,)


def read_encoding(view: View, place: Place = FIRST_REPETITION) -> Encoding:
    """Return a cell's encoding with volunteers' constants and feature map."""
    rows = view.columns("project", "constants", place)
    constants = dict(zip(rows["name"], rows["value"], strict=True))
    encoding = Encoding.from_json(view.metadata("project")["encoding"])
    feature_map = view.setting("project.judge")
    return replace(encoding, constants=constants, feature_map=feature_map)


def linear_model(
    view: View, line: LinearModel, place: Place = FIRST_REPETITION
) -> CurveClassifier:
    """Return a linear classifier of z as a model of raw curves."""
    from curvote.curve_classifier import CurveClassifier  # scikit-learn takes a second

    encoding = read_encoding(view, place)
    classifier = Linear(*line, encoding.feature_map)
    classes = Classes(view.metadata("project")["classes"])
    return CurveClassifier.of(encoding, record_columns(view), classifier, classes)


def record_columns(view: View, stage: str = "project") -> list[str]:
    """Return the column names of raw records: features, or grid points.

    ``stage`` is one that tells what the source told it.
    """
    facts = view.metadata(stage)
    features = [feature["name"] for feature in facts.get("features") or ()]
    return features or grid_names(facts["grid"])


def decoded_model(view: View) -> CurveClassifier:
    """Return the one classifier that the server decoded, as a model."""
    return linear_model(view, classifier_line(view.columns("aggregate", "classifier")))


def ensemble_model(
    view: View, code: Callable[[int], Array] = one_against_rest_code
) -> CurveClassifier:
    """Return the weighted ensemble of weak classifiers as a model.

    ``code`` returns the questions about K classes that they answer (`questions`).
    """
    weak = lines_of_variant(view.columns("train", "weak"), "weak")
    rows, n_classes = view.columns("aggregate", "ensemble"), _class_count(view)
    coef, intercept = combine_lines(code(n_classes), weak, signed_weights(rows))
    return linear_model(view, classifier_line({"coef": coef, "intercept": intercept}))


def _class_count(view: View) -> int:
    return len(view.metadata("project")["classes"])


def history_model(view: View) -> CurveClassifier:
    """Return the ensemble of the cell's arrival as a model."""
    rows = view.columns("update", "history")
    return linear_model(view, (rows["coef"][-1], float(rows["intercept"][-1])))
