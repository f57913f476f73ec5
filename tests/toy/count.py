"""Stage count: shops tell the noised colour of a customer."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.toy.drawing import drawn


def one(here: Here) -> Rows:
    """Return the table ``tally``."""
    return {"tally": drawn(here, "colour")}
