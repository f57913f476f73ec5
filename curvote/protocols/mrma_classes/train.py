"""Stage train of `mrma_classes`: weak classifiers of each class against the rest.

They stand in turn: row b of a variant is about class b mod K. Each is divided by its
length, (coef, intercept) as one vector, which changes no vote: of few or noisy reports
they are longest where they mean least. Measured on 20 x 10,000 records of
`simulated-classes`, d = 8, half of them reports, epsilon 1 / 2 / 5, errors in %: of
three classes 28 / 10 / 2 (44 / 15 / 3 without), of five 65 / 49 / 26 (72 / 58 / 29),
and of ten next to nothing is learned: 90 / 87 / 80. `direct` and `votes` do far better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Rows, StageContext
from curvote.protocols.mrma.tables import REPORT_VARIANTS, WEAK_VARIANTS
from curvote.protocols.mrma.train import Index, facts, learn_repetitions
from curvote.protocols.questions import one_against_rest_code
from curvote.server.weak import disjoint_parts, draw_subsets

__all__ = ["block", "facts"]


def block(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``weak`` of each repetition."""
    for weak in learn_repetitions(
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
) -> tuple[list[Index], NDArray[np.int8]]:
    """Return the rows of each classifier, and its variant."""
    count, size = context.params["train.count"], context.params["train.size"]
    n_classes = len(context.inputs["project"].metadata["classes"])
    is_training = reports["arm"] == REPORT_VARIANTS.index("mrma")
    questions = range(len(one_against_rest_code(n_classes)))
    rows_by_question = [np.flatnonzero(reports["question"] == q) for q in questions]
    rng, training_rows = (
        context.generator("draw"),
        [rows[is_training[rows]] for rows in rows_by_question],
    )
    chosen_rows = [
        r[draw_subsets(rng, len(r), count, min(size, len(r)))] for r in training_rows
    ]
    if is_training.all():  # nobody reports who votes: there is nothing to pool
        return _interleave(chosen_rows), np.zeros(
            count * len(training_rows), dtype=np.int8
        )
    rng = context.generator("pool")
    pooled = [
        [r[part] for part in disjoint_parts(rng, len(r), count)]
        for r in rows_by_question
    ]
    sizes = np.array([count, count, 1]) * len(rows_by_question)
    variants = np.repeat(np.arange(len(WEAK_VARIANTS), dtype=np.int8), sizes)
    return [
        *_interleave(chosen_rows),
        *_interleave(pooled),
        *rows_by_question,
    ], variants


def _interleave(by_question: Sequence[Any]) -> list[Index]:
    """Return the first of each question, then the second of each, and so on."""
    return [rows for group in zip(*by_question, strict=True) for rows in group]
