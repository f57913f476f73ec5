"""Stages of `mrma_classes`: MRMA's, each report and vote about one class."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Rows, StageContext
from curvote.curves.encoding import decision_sign
from curvote.learning.votes import disjoint_parts, draw_subsets
from curvote.systems.common import models, study, tables
from curvote.systems.common.questions import (
    Array,
    interleave_questions,
    one_against_rest_code,
    split_questions,
)
from curvote.systems.common.study import draw_stage, score_rows, study_clients
from curvote.systems.mrma import stages
from curvote.systems.mrma.messages import ClassReport, ClassVote

privatize_classes_metadata, privatize_classes = stages.report_stage(ClassReport())


train_classes_metadata = models.train_metadata


def train_classes_batch(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``weak`` of each repetition."""
    for weak in models.learn_repetitions(
        many, "class_reports", _choose_rows, ("arm", "question")
    ):
        yield {"weak": weak | normalize_lines(weak)}


def normalize_lines(weak: Columns) -> Columns:
    """Return coef (B, d) and intercept (B,) divided by their length."""
    line = np.column_stack([weak["coef"], weak["intercept"]])
    length = np.linalg.norm(line, axis=1)
    line /= np.where(length > 0, length, 1)[:, None]
    return {"coef": line[:, :-1], "intercept": line[:, -1]}


def _choose_rows(
    context: StageContext, reports: Columns
) -> tuple[list[models.Index], NDArray[np.int8]]:
    """Return the rows of each classifier, and its variant."""
    count, size = context.params["train.count"], context.params["train.size"]
    n_classes = len(context.inputs["project"].metadata["classes"])
    is_training = reports["arm"] == tables.REPORT_VARIANTS.index("mrma")
    numbers = range(len(one_against_rest_code(n_classes)))
    by_question = [np.flatnonzero(reports["question"] == q) for q in numbers]
    training = [rows[is_training[rows]] for rows in by_question]
    rng = context.generator("draw")
    chosen = [r[draw_subsets(rng, len(r), count, min(size, len(r)))] for r in training]
    if is_training.all():  # nobody reports who votes: there is nothing to pool
        return _interleave(chosen), np.zeros(count * len(training), dtype=np.int8)
    rng = context.generator("pool")
    pooled = [
        [r[part] for part in disjoint_parts(rng, len(r), count)] for r in by_question
    ]
    sizes = np.array([count, count, 1]) * len(by_question)
    variants = np.repeat(np.arange(len(tables.WEAK_VARIANTS), dtype=np.int8), sizes)
    return [*_interleave(chosen), *_interleave(pooled), *by_question], variants


def _interleave(by_question: Sequence[Any]) -> list[models.Index]:
    """Return the first of each question, then the second of each, and so on."""
    return [rows for group in zip(*by_question, strict=True) for rows in group]


evaluate_classes_metadata, evaluate_classes = draw_stage(ClassVote())


aggregate_classes_metadata = stages.aggregate_metadata


def aggregate_classes(context: StageContext) -> Rows:
    """Return the table ``ensemble``; weights sum to 1 among those about one class."""
    classes = context.inputs["project"].metadata["classes"]
    epsilon = context.inputs["evaluate"].metadata["epsilon"]
    votes = context.rows("evaluate", "votes")
    ensembles = [
        stages.ensemble_columns(columns, epsilon, context.metadata)
        for columns in split_questions(votes, len(one_against_rest_code(len(classes))))
    ]
    return {
        "ensemble": {
            name: interleave_questions([columns[name] for columns in ensembles])
            for name in ensembles[0]
        }
    }


TestData = tuple[Array, NDArray[np.int64]]


def score_classes(context: StageContext) -> Rows:
    """Return the table ``scores``: one row for each method, and recalls of `mrma`."""
    judge = context.params["project.judge"]
    test = study_clients(context).features_and_places(judge, "test")
    classes = context.inputs["project"].metadata["classes"]
    code, weak = one_against_rest_code(len(classes)), context.rows("train", "weak")
    ensemble = context.rows("aggregate", "ensemble")
    errors = ensemble_errors(code, test, weak, ensemble)
    errors |= pooled_errors(code, test, weak)
    rows = score_rows(errors, none_passed_flags(ensemble))
    predictions = models.combined_predictions(
        code,
        test[0],
        tables.lines_of_variant(weak, "weak"),
        models.signed_weights(ensemble),
    )
    return study.add_class_scores(rows, "mrma", test[1], predictions, classes)


def none_passed_flags(ensemble: Columns) -> dict[str, bool]:
    """Return whether no classifier passed, with and without reversal."""
    names = {"mrma": "none_passed", "ma": "none_passed_ma"}
    return {method: bool(ensemble[name].all()) for method, name in names.items()}


def ensemble_errors(
    code: Array, test: TestData, weak: Columns, ensemble: Columns
) -> dict[str, float]:
    """Return the error of each method of the judged weak classifiers."""
    lines = tables.lines_of_variant(weak, "weak")
    signs = np.where(ensemble["reversed"], -1.0, 1.0)
    by_class = split_questions(ensemble, len(code))
    best = [stages.best_single_weights(rows) for rows in by_class]
    weights_by_method = {
        "ma": ensemble["weight_ma"],
        "mrma": models.signed_weights(ensemble),
        "best_single": signs * interleave_questions(best),
    }
    errors = {
        name: models.combined_error(code, test, lines, share)
        for name, share in weights_by_method.items()
    }
    errors["weak"] = _mean_rule_error(code, test, lines, np.ones(len(signs)))
    return errors | {"mr": _mean_rule_error(code, test, lines, signs)}


def pooled_errors(code: Array, test: TestData, weak: Columns) -> dict[str, float]:
    """Return the error of each method that learns from all reports."""
    lines = tables.lines_of_variant(weak, "pooled")
    all_data_lines = tables.lines_of_variant(weak, "all_data")
    signs = decision_sign(test[0] @ lines[0].T + lines[1])
    votes = signs.reshape(len(test[0]), -1, len(code))
    elected = (votes.sum(axis=1) @ code).argmax(axis=1)
    return {
        "voting": float(np.mean(elected != test[1])),
        "averaging": models.combined_error(code, test, lines, np.ones(len(lines[0]))),
        "all_data": models.combined_error(
            code, test, all_data_lines, np.ones(len(code))
        ),
    }


def _mean_rule_error(
    code: Array, test: TestData, lines: models.Lines, signs: Array
) -> float:
    """Return the mean error of rules of one classifier a class."""
    rules = np.split(np.arange(len(signs)), len(signs) // len(code))
    errors = [
        models.combined_error(code, test, (lines[0][r], lines[1][r]), signs[r])
        for r in rules
    ]
    return float(np.mean(errors))
