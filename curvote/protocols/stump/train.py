"""Stage train of `stump`: each number's public thresholds, from no client's data."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.cells.asking import facts
from curvote.representation.partition import halves

__all__ = ["facts", "one"]


def one(here: Here) -> Rows:
    """Return the table ``questions``: a row a number and threshold."""
    public, count = here.facts, here.params["stump.thresholds"]
    made = halves(public["d"], public["rescale"], count)
    return {"questions": made.columns}
