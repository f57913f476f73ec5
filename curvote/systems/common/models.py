"""Models to keep of a run's cell, and the outcomes of production."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.classes import Classes
from curvote.chain.axis import PipelineSettings
from curvote.chain.stage import Metadata, Place
from curvote.chain.system import View
from curvote.curves.columns import grid_names
from curvote.curves.encoding import Encoding, Linear
from curvote.learning.votes import is_drift, reversed_utility
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.systems.common.classifiers import (
    classifier_line,
    combine_lines,
    signed_weights,
)
from curvote.systems.common.questions import one_against_rest_code
from curvote.systems.common.tables import lines_of_variant

if TYPE_CHECKING:
    from curvote.curves.curve_classifier import CurveClassifier


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
    # scikit-learn takes a second
    from curvote.curves.curve_classifier import CurveClassifier

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
    weights = signed_weights(view.columns("aggregate", "ensemble"))
    n_classes = len(view.metadata("project")["classes"])
    coef, intercept = combine_lines(code(n_classes), weak, weights)
    return linear_model(view, classifier_line({"coef": coef, "intercept": intercept}))


def history_model(view: View) -> CurveClassifier:
    """Return the ensemble of the cell's arrival as a model."""
    rows = view.columns("update", "history")
    return linear_model(view, (rows["coef"][-1], float(rows["intercept"][-1])))


def count_reports(view: View) -> dict[str, float]:
    """Return the number of reports that made the classifier."""
    return {"reports": int(view.columns("aggregate", "classifier")["n"][0])}


def vote_outcome(view: View) -> dict[str, float]:
    """Return counts, and the estimated utility of the best classifier.

    Choosing it makes it look better than it is, so ``utility_se`` is a lower bound on
    its error.
    """
    votes = view.columns("evaluate", "votes")
    ensemble = view.columns("aggregate", "ensemble")
    utility = reversed_utility(ensemble["utility"], ensemble["reversed"])
    best = int(np.argmax(utility))
    keep = BinaryRR(epsilon=view.cell["epsilon"]).keep
    n = int(votes["n"][best])
    share = (votes["positive"][best] + 2) / (n + 4)  # never 0: Agresti & Coull (1998)
    return {
        "reports": view.count("privatize") if view.holds("privatize") else 0,
        "votes": int(votes["n"].sum()),
        "classifiers": len(utility),
        "passed": int((utility > view.metadata("aggregate")["cutoff"]).sum()),
        "utility": float(utility[best]),
        "utility_se": float(np.sqrt(share * (1 - share) / n) / (2 * keep - 1)),
    }


def votes_declined(settings: PipelineSettings, metadata: Metadata) -> bool:
    """Say whether the newest votes found the classifiers worse.

    The level is that of ``online.drop`` standard errors.
    """
    level = metadata.get("fall")
    return level is not None and is_drift(level, settings.online.drop)
