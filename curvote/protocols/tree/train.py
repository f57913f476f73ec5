"""Stage train of `tree`: a grid that the public draws, from no client's data."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.cells.asking import facts
from curvote.representation.partition import random_grid

__all__ = ["facts", "one"]


def one(context: StageContext) -> Rows:
    """Return the table ``questions``: the one grid."""
    public, rng = context.metadata, context.generator("draw")
    partitions = random_grid(
        public["d"], public["rescale"], context.params["tree.cells"], rng
    )
    return {"questions": partitions.columns}
