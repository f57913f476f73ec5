"""Scorecards: questions and answers as scores by cell, and as a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Inputs, Metadata, Params, StageContext
from curvote.chain.system import View
from curvote.curves.partition import Partitions
from curvote.learning.cells import CellShares, estimate_shares
from curvote.systems.common.models import (
    FIRST_REPETITION,
    read_encoding,
    record_columns,
)

if TYPE_CHECKING:
    from curvote.systems.cells.model import CellClassifier


Array = NDArray[np.float64]


def scorecard_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return d, epsilon and the number of classes, which decoding needs."""
    metadata = inputs["privatize"].metadata
    n_classes = len(inputs["project"].metadata["classes"])
    return {"d": metadata["d"], "epsilon": metadata["epsilon"], "n_classes": n_classes}


def tally_answers(context: StageContext) -> tuple[Partitions, CellShares]:
    """Return the questions of one repetition, and the shares of answers."""
    public = context.metadata
    partitions = Partitions.from_columns(
        context.rows("train", "questions"), public["d"]
    )
    answers = context.rows("privatize", "answers")
    shape = partitions.count, partitions.cells, public["n_classes"]
    class_shares = estimate_shares(
        answers["question"], answers["answer"], shape, public["epsilon"]
    )
    return partitions, class_shares


def scorecard_columns(partitions: Partitions, scores: Array, n: Array) -> Columns:
    """Return table ``scorecard``: cuts, scores (Q, C, K) and answers (Q,) to each."""
    columns = {"score": scores.reshape(partitions.count, -1), "n": n.astype(np.int64)}
    return partitions.columns | columns


def read_scorecard(
    rows: Mapping[str, NDArray[Any]], d: int, n_classes: int
) -> tuple[Partitions, Array]:
    """Return the questions and scores (Q, C, K) of table ``scorecard``."""
    partitions = Partitions.from_columns(rows, d)
    return partitions, rows["score"].reshape(
        partitions.count, partitions.cells, n_classes
    )


def scorecard_model(view: View) -> CellClassifier:
    """Return the classifier of raw records of the first repetition."""
    from curvote.systems.cells.model import CellClassifier  # see `linear`

    encoding, classes = read_encoding(view), list(view.metadata("project")["classes"])
    rows = view.columns("aggregate", "scorecard", FIRST_REPETITION)
    partitions, scores = read_scorecard(rows, encoding.d, len(classes))
    return CellClassifier.from_scorecard(
        encoding, record_columns(view), partitions, scores, classes
    )


def scorecard_outcome(view: View) -> dict[str, float]:
    """Return the number of answers that were counted."""
    return {
        "reports": len(view.columns("privatize", "answers", FIRST_REPETITION)["answer"])
    }
