"""Stage train of `tree`: a grid that the public draws, from no client's data."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.cells.asking import facts
from curvote.representation.partition import grid

__all__ = ["facts", "one"]


def one(here: Here) -> Rows:
    """Return the table ``questions``: the one grid."""
    public, rng = here.facts, here.generator("draw")
    made = grid(public["d"], public["rescale"], here.params["tree.cells"], rng)
    return {"questions": made.columns}
