"""System of cells: its tables and stages, by method."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import VECTOR, Table

_CUTS = {"of": VECTOR, "feature": VECTOR, "threshold": VECTOR}
QUESTIONS: Final = Table("questions", _CUTS, unit="question")
ANSWERS: Final = Table(
    "answers", {"question": "int64", "answer": "int64"}, unit="message"
)
# The scores of a question are (C, K), cell by cell.
SCORECARD: Final = Table(
    "scorecard", {**_CUTS, "score": VECTOR, "n": "int64"}, unit="question"
)
