"""Stage aggregate of `counts`: naive Bayes, from counts freed of the noise's bias."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.cells.scorecard import facts, scorecard_columns, tally_answers
from curvote.server.cells import naive_bayes_scores

__all__ = ["facts", "one"]


def one(context: StageContext) -> Rows:
    """Return the table ``scorecard``: a row a number, log-odds by bin and class."""
    partitions, class_shares = tally_answers(context)
    return {
        "scorecard": scorecard_columns(
            partitions, naive_bayes_scores(class_shares), class_shares.n
        )
    }
