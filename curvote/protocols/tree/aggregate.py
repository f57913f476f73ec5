"""Stage aggregate of `tree`: the class of each leaf of the public grid."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.cells.scorecard import facts, scorecard_columns, tally_answers
from curvote.server.cells import leaf_scores

__all__ = ["facts", "one"]


def one(context: StageContext) -> Rows:
    """Return the table ``scorecard``: one row."""
    partitions, class_shares = tally_answers(context)
    return {
        "scorecard": scorecard_columns(
            partitions, leaf_scores(class_shares), class_shares.n
        )
    }
