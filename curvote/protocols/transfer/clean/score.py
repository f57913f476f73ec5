"""Stage report without privacy: logistic regression on records as they are.

It is unpenalised but for what keeps it finite, and has an intercept for each server:
that of the target counts, as classes are not equally frequent everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from curvote.chain.stage import Here, Rows
from curvote.protocols.transfer import dealing
from curvote.protocols.transfer.clean.methods import POOLED, TARGET
from curvote.protocols.transfer.measured import measured, score_table

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
LOOSE = 1e4  # a ridge that only separated classes feel


def one(here: Here) -> Rows:
    """Return the table ``scores`` of what all records tell, and the target's own."""
    return score_table(_measured(here))


def _measured(here: Here) -> Iterator[tuple[str, str, float]]:
    records = here.rows("project", "encoded")
    held, tested = _held(here)
    labels, classes = records["label"], len(here.inputs["project"].facts["classes"])
    # What a task takes from [0, 1]: z is the same, from [-1, 1].
    cube = (1 + np.clip(records["z"], -1, 1)) / 2
    for method, known in _known(held, here.params["target"]):
        every = np.concatenate(known)
        where = np.repeat(np.eye(len(known)), [len(rows) for rows in known], axis=0)
        asked = np.tile(np.eye(1, len(known)), (len(tested), 1))
        said = _said(
            np.hstack([cube[every], where]),
            labels[every],
            np.hstack([cube[tested], asked]),
        )
        for metric, value in measured(labels[tested], said, classes).items():
            yield method, metric, value


def _held(here: Here) -> tuple[dict[str, Codes], Codes]:
    """Return the rows that each server learns from, and those that are tested."""
    records, params = here.rows("project", "encoded"), here.params
    held, target = dealing.held(here, records), params["target"]
    tested, kept = dealing.set_aside(
        here, held[target], records, params["transfer.test"]
    )
    return held | {target: kept}, tested


def _known(held: dict[str, Codes], target: str) -> Iterator[tuple[str, list[Codes]]]:
    """Yield each method and the rows it learns from, the target's first."""
    sources = [rows for server, rows in held.items() if server != target]
    yield POOLED.name, [held[target], *sources]
    yield TARGET.name, [held[target]]


def _said(known: Array, labels: Codes, asked: Array) -> Codes:
    """Return the class of each record; of one class alone there is nothing to learn."""
    if len(np.unique(labels)) < 2:
        return np.full(len(asked), labels[0])
    learner = LogisticRegression(C=LOOSE, solver="newton-cholesky")
    return np.asarray(learner.fit(known, labels).predict(asked), dtype=np.int64)
