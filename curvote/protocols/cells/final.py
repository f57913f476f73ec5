"""The scorecard as a model to keep; and from how many answers it was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.view import View
from curvote.protocols.cells.scorecard import read
from curvote.protocols.finals import FIRST, columns_of, encoding_of

if TYPE_CHECKING:
    from curvote.protocols.cells.kept import CellClassifier


def final(view: View) -> CellClassifier:
    """Return the classifier of the first repetition, of raw records."""
    from curvote.protocols.cells.kept import CellClassifier  # see `linear`

    encoding, classes = encoding_of(view), list(view.facts("project")["classes"])
    rows = view.columns("aggregate", "scorecard", FIRST)
    asked, scores = read(rows, encoding.d, len(classes))
    return CellClassifier.of(encoding, columns_of(view), asked, scores, classes)


def outcome(view: View) -> dict[str, float]:
    """Return how many answers were counted."""
    return {"reports": len(view.columns("privatize", "answers", FIRST)["answer"])}
