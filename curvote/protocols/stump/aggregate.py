"""Stage aggregate of `stump`: the threshold whose sides name most classes rightly."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols.cells.scorecard import card, facts, tallied
from curvote.server.cells import best

__all__ = ["facts", "one"]


def one(here: Here) -> Rows:
    """Return the table ``scorecard``: one row."""
    asked, told = tallied(here)
    place, scores = best(told)
    rows = np.array([place])
    return {"scorecard": card(asked.some(rows), scores, told.n[rows])}
