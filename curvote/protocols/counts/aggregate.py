"""Stage aggregate of `counts`: naive Bayes, from counts freed of the noise's bias."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.cells.scorecard import card, facts, tallied
from curvote.server.cells import naive_bayes

__all__ = ["facts", "one"]


def one(here: Here) -> Rows:
    """Return the table ``scorecard``: a row a number, log-odds by bin and class."""
    asked, told = tallied(here)
    return {"scorecard": card(asked, naive_bayes(told), told.n)}
