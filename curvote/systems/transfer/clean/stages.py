"""Stage report without privacy: logistic regression on records as they are.

It is unpenalised but for what keeps it finite, and has an intercept for each server:
that of the target counts, as classes are not equally frequent everywhere.
"""

from __future__ import annotations

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
    records = context.rows("project", "encoded")
    sources, tested = _split_rows(context)
    own_rows, labels = sources.pop(context.params["target"]), records["label"]
    n_classes = len(context.inputs["project"].metadata["classes"])
    # What a task takes from [0, 1]: z is the same, from [-1, 1].
    cube = (1 + np.clip(records["z"], -1, 1)) / 2
    rows = []
    for method, parts in (
        (POOLED.name, [own_rows, *sources.values()]),
        (TARGET.name, [own_rows]),
    ):
        every = np.concatenate(parts)
        servers = np.eye(len(parts))
        predictions = _predict(
            np.hstack([cube[every], servers.repeat([len(part) for part in parts], 0)]),
            labels[every],
            np.hstack([cube[tested], np.tile(servers[:1], (len(tested), 1))]),
        )
        scores = class_scores(labels[tested], predictions, n_classes)
        rows += [(method, metric, value) for metric, value in scores.items()]
    return score_table(rows)


def _split_rows(context: StageContext) -> tuple[dict[str, Codes], Codes]:
    """Return the training rows of each server, and the tested rows."""
    records, params = context.rows("project", "encoded"), context.params
    server_rows, target = settings.server_rows(context, records), params["target"]
    tested, kept_rows = settings.split_test(
        context, server_rows[target], records, params["transfer.test"]
    )
    return server_rows | {target: kept_rows}, tested


def _predict(inputs: Array, labels: Codes, queries: Array) -> Codes:
    """Return the predicted class of each query."""
    if len(np.unique(labels)) < 2:
        return np.full(len(queries), labels[0])
    learner = LogisticRegression(C=WEAK_PENALTY, solver="newton-cholesky")
    return np.asarray(learner.fit(inputs, labels).predict(queries), dtype=np.int64)
