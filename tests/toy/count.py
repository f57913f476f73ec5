"""Stage count: shops tell the noised colour of a customer."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.toy.drawing import drawn


def count(context: StageContext) -> Rows:
    """Return the table ``tally``."""
    return {"tally": drawn(context, "colour")}
