"""Stage ask: people answer with their noised place and colour."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.toy.drawing import drawn


def ask(context: StageContext) -> Rows:
    """Return the table ``answers``."""
    return {"answers": drawn(context, "answer")}
