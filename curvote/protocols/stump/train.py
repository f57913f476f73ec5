"""Stage train of `stump`: each number's public thresholds, from no client's data."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.cells.asking import facts
from curvote.representation.partition import half_partitions

__all__ = ["facts", "one"]


def one(context: StageContext) -> Rows:
    """Return the table ``questions``: a row a number and threshold."""
    public, count = context.metadata, context.params["stump.thresholds"]
    partitions = half_partitions(public["d"], public["rescale"], count)
    return {"questions": partitions.columns}
