"""Stage aggregate of `tree`: the class of each leaf of the public grid."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.cells.scorecard import card, facts, tallied
from curvote.server.cells import leaves

__all__ = ["facts", "one"]


def one(here: Here) -> Rows:
    """Return the table ``scorecard``: one row."""
    asked, told = tallied(here)
    return {"scorecard": card(asked, leaves(told), told.n)}
