"""Linear classifiers as columns, as models to keep, and what production may know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.classes import Classes
from curvote.chain.axis import PipelineSettings
from curvote.chain.stage import Columns, Metadata, Place
from curvote.chain.system import View
from curvote.curves.columns import grid_names
from curvote.curves.encoding import Encoding, Linear, predict_indices
from curvote.learning.votes import average_classifiers, is_drift, reversed_utility
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.systems.common.questions import one_against_rest_code
from curvote.systems.common.tables import WEAK_VARIANTS, Array, lines_of_variant

if TYPE_CHECKING:
    from curvote.curves.curve_classifier import CurveClassifier

LinearModel = tuple[Array, Any]
Lines = tuple[Array, Array]
FIRST_REPETITION: Place = (0,)


def classifier_columns(line: LinearModel, n: int) -> Columns:
    """Return table ``classifier`` of ``n`` reports: one row, or one for each class.

    ``line`` is coef (d,) and intercept of two classes, or (K, d) and (K,) of more.
    """
    coef, intercept = np.atleast_2d(line[0]), np.atleast_1d(line[1])
    return {"coef": coef, "intercept": intercept, "n": np.full(len(coef), n)}


def classifier_line(rows: Columns) -> LinearModel:
    """Return (coef, intercept) of the table ``classifier``."""
    coef, intercept = rows["coef"], rows["intercept"]
    if len(coef) == 1:
        return coef[0], float(intercept[0])
    return coef, intercept


def predict_places(features: Array, rows: Columns) -> NDArray[np.int64]:
    """Return the places (n,) of classes that a table ``classifier`` predicts."""
    return predict_indices(features @ rows["coef"].T + rows["intercept"])


def average_ensemble(lines: Lines, ensemble: Columns) -> LinearModel:
    """Return the weighted average of coef (B, d) and intercept (B,).

    ``ensemble`` holds the columns ``reversed`` and ``weight`` (B,).
    """
    return average_classifiers(*lines, signed_weights(ensemble))


def weak_columns(coef: Array, intercept: Array, n: int) -> Columns:
    """Return the rows of table ``weak``: coef (B, d), intercept (B,), ``n`` reports."""
    count = len(coef)
    return {
        "arm": np.full(count, WEAK_VARIANTS.index("weak"), dtype=np.int8),
        "learner": np.arange(count),
        "coef": coef,
        "intercept": intercept,
        "n": np.full(count, n),
        "flagged": np.zeros(count, dtype=bool),
    }


def signed_weights(ensemble: Columns) -> Array:
    """Return the weights (B,) of table ``ensemble``, below 0 where it reverses."""
    signs = np.where(ensemble["reversed"], -1.0, 1.0)
    return np.asarray(signs * ensemble["weight"])


def combined_error(
    code: Array, tested: tuple[Array, NDArray[Any]], lines: Lines, weights: Array
) -> float:
    """Return the share of ``tested`` clients that a combination gets wrong."""
    predictions = combined_predictions(code, tested[0], lines, weights)
    return float(np.mean(predictions != tested[1]))


def combined_predictions(
    code: Array, features: Array, lines: Lines, weights: Array
) -> NDArray[np.int64]:
    """Return the places (n,) that a combination predicts for ``features``."""
    coef, intercept = combine_lines(code, lines, weights)
    return predict_indices(features @ coef.T + intercept)


def combine_lines(code: Array, lines: Lines, weights: Array) -> Lines:
    """Return the lines (R, d), (R,) of weighted answers to the questions.

    ``lines`` are coef (B, d) and intercept (B,) of classifiers that answer the
    questions in turn, ``weights`` (B,) negative where one is reversed. One line of two
    classes, their weighted sum (MRMA, equation 11); else a score for each class, the
    sum of what speaks for it less what speaks against it.
    """
    if code.shape[1] == 2:
        coef, intercept = average_classifiers(*lines, weights)
        return coef[None], np.array([intercept])
    class_weights = weights[:, None] * code[np.arange(len(weights)) % len(code)]
    return class_weights.T @ lines[0], class_weights.T @ lines[1]


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
