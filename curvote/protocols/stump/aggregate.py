"""Stage aggregate of `stump`: the threshold whose sides name most classes rightly."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.cells.scorecard import facts, scorecard_columns, tally_answers
from curvote.server.cells import best_question

__all__ = ["facts", "one"]


def one(context: StageContext) -> Rows:
    """Return the table ``scorecard``: one row."""
    partitions, class_shares = tally_answers(context)
    place, scores = best_question(class_shares)
    rows = np.array([place])
    return {
        "scorecard": scorecard_columns(
            partitions.select(rows), scores, class_shares.n[rows]
        )
    }
