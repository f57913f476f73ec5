"""Outcomes of cell systems: the scorecard as a model, and its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.view import View
from curvote.protocols.cells.scorecard import read_scorecard
from curvote.protocols.finals import FIRST_REPETITION, read_encoding, record_columns

if TYPE_CHECKING:
    from curvote.protocols.cells.kept import CellClassifier


def scorecard_model(view: View) -> CellClassifier:
    """Return the classifier of raw records of the first repetition."""
    from curvote.protocols.cells.kept import CellClassifier  # see `linear`

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
