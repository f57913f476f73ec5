"""Stage ask: people answer with their noised place and colour."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.toy.drawing import drawn


def one(here: Here) -> Rows:
    """Return the table ``answers``."""
    return {"answers": drawn(here, "answer")}
