"""Stage train of `counts`: the public bins of each number, from no client's data."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.cells.asking import facts
from curvote.representation.partition import bin_partitions

__all__ = ["facts", "one"]


def one(context: StageContext) -> Rows:
    """Return the table ``questions``: a row a number."""
    partitions = bin_partitions(
        context.metadata["d"],
        context.metadata["rescale"],
        context.params["counts.bins"],
    )
    return {"questions": partitions.columns}
