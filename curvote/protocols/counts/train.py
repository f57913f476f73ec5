"""Stage train of `counts`: the public bins of each number, from no client's data."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.cells.asking import facts
from curvote.representation.partition import bins

__all__ = ["facts", "one"]


def one(here: Here) -> Rows:
    """Return the table ``questions``: a row a number."""
    made = bins(here.facts["d"], here.facts["rescale"], here.params["counts.bins"])
    return {"questions": made.columns}
