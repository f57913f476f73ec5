"""Stage report without privacy: logistic regression on records as they are.

It is unpenalised but for what keeps it finite, and has an intercept for each server:
that of the target counts, as classes are not equally frequent everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from curvote.chain.stage import Rows, StageContext
from curvote.systems.transfer import settings
from curvote.systems.transfer.clean.system import POOLED, TARGET
from curvote.systems.transfer.measures import class_scores, score_table

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
WEAK_PENALTY = 1e4  # a ridge that only separated classes feel


def report(context: StageContext) -> Rows:
    """Return the table ``scores`` of the pooled and the target's own classifier."""
    return score_table(_score_rows(context))


def _score_rows(context: StageContext) -> Iterator[tuple[str, str, float]]:
    """Yield (method, metric, value) of each clean classifier."""
    records = context.rows("project", "encoded")
    server_rows, tested = _split_rows(context)
    labels = records["label"]
    classes = len(context.inputs["project"].metadata["classes"])
    # What a task takes from [0, 1]: z is the same, from [-1, 1].
    cube = (1 + np.clip(records["z"], -1, 1)) / 2
    for method, training_rows in _training_sets(server_rows, context.params["target"]):
        every = np.concatenate(training_rows)
        server_columns = np.repeat(
            np.eye(len(training_rows)), [len(rows) for rows in training_rows], axis=0
        )
        target_column = np.tile(np.eye(1, len(training_rows)), (len(tested), 1))
        predictions = _predict(
            np.hstack([cube[every], server_columns]),
            labels[every],
            np.hstack([cube[tested], target_column]),
        )
        for metric, value in class_scores(labels[tested], predictions, classes).items():
            yield method, metric, value


def _split_rows(context: StageContext) -> tuple[dict[str, Codes], Codes]:
    """Return the training rows of each server, and the tested rows."""
    records, params = context.rows("project", "encoded"), context.params
    server_rows, target = settings.server_rows(context, records), params["target"]
    tested, kept_rows = settings.split_test(
        context, server_rows[target], records, params["transfer.test"]
    )
    return server_rows | {target: kept_rows}, tested


def _training_sets(
    server_rows: dict[str, Codes], target: str
) -> Iterator[tuple[str, list[Codes]]]:
    """Yield each method and its training rows, the target's first."""
    sources = [rows for server, rows in server_rows.items() if server != target]
    yield POOLED.name, [server_rows[target], *sources]
    yield TARGET.name, [server_rows[target]]


def _predict(inputs: Array, labels: Codes, queries: Array) -> Codes:
    """Return the predicted class of each query."""
    if len(np.unique(labels)) < 2:
        return np.full(len(queries), labels[0])
    learner = LogisticRegression(C=WEAK_PENALTY, solver="newton-cholesky")
    return np.asarray(learner.fit(inputs, labels).predict(queries), dtype=np.int64)
