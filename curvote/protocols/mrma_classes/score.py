"""Stage report of a study of `mrma_classes`: the true test error of every method.

A weak classifier tells one class from the rest, so the methods `weak` and `mr` are of K
of them together, one of each class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Rows, StageContext
from curvote.classifier import decision_sign
from curvote.protocols import by_class
from curvote.protocols.combining import (
    Lines,
    combined_error,
    combined_predictions,
    signed_weights,
)
from curvote.protocols.mrma.score import best_single_weights
from curvote.protocols.mrma.tables import lines_of_variant
from curvote.protocols.questions import (
    Array,
    interleave_questions,
    one_against_rest_code,
    split_questions,
)
from curvote.protocols.scores import score_rows
from curvote.protocols.study import study_clients

TestData = tuple[Array, NDArray[np.int64]]


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: one row for each method, and recalls of `mrma`."""
    test = study_clients(context).features_and_places(
        context.params["project.judge"], "test"
    )
    classes = context.inputs["project"].metadata["classes"]
    code, weak = one_against_rest_code(len(classes)), context.rows("train", "weak")
    ensemble = context.rows("aggregate", "ensemble")
    errors = ensemble_errors(code, test, weak, ensemble) | pooled_errors(
        code, test, weak
    )
    rows = score_rows(errors, none_passed_flags(ensemble))
    predictions = combined_predictions(
        code, test[0], lines_of_variant(weak, "weak"), signed_weights(ensemble)
    )
    return by_class.add_class_scores(rows, "mrma", test[1], predictions, classes)


def none_passed_flags(ensemble: Columns) -> dict[str, bool]:
    """Return whether no classifier passed, with and without reversal."""
    names = {"mrma": "none_passed", "ma": "none_passed_ma"}
    return {method: bool(ensemble[name].all()) for method, name in names.items()}


def ensemble_errors(
    code: Array, test: TestData, weak: Columns, ensemble: Columns
) -> dict[str, float]:
    """Return the error of each method of the judged weak classifiers."""
    lines, signs = (
        lines_of_variant(weak, "weak"),
        np.where(ensemble["reversed"], -1.0, 1.0),
    )
    weights_by_method = {
        "ma": ensemble["weight_ma"],
        "mrma": signed_weights(ensemble),
        "best_single": signs
        * interleave_questions(
            [best_single_weights(rows) for rows in split_questions(ensemble, len(code))]
        ),
    }
    errors = {
        name: combined_error(code, test, lines, share)
        for name, share in weights_by_method.items()
    }
    errors["weak"] = _mean_rule_error(code, test, lines, np.ones(len(signs)))
    return errors | {"mr": _mean_rule_error(code, test, lines, signs)}


def pooled_errors(code: Array, test: TestData, weak: Columns) -> dict[str, float]:
    """Return the error of each method that learns from all reports."""
    lines, all_data_lines = (
        lines_of_variant(weak, "pooled"),
        lines_of_variant(weak, "all_data"),
    )
    votes = decision_sign(test[0] @ lines[0].T + lines[1]).reshape(
        len(test[0]), -1, len(code)
    )
    elected = (votes.sum(axis=1) @ code).argmax(axis=1)
    return {
        "voting": float(np.mean(elected != test[1])),
        "averaging": combined_error(code, test, lines, np.ones(len(lines[0]))),
        "all_data": combined_error(code, test, all_data_lines, np.ones(len(code))),
    }


def _mean_rule_error(code: Array, test: TestData, lines: Lines, signs: Array) -> float:
    """Return the mean error of rules of one classifier a class."""
    rules = np.split(np.arange(len(signs)), len(signs) // len(code))
    errors = [
        combined_error(code, test, (lines[0][r], lines[1][r]), signs[r]) for r in rules
    ]
    return float(np.mean(errors))
