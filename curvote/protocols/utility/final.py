"""What a run keeps of a cell: the model whose answers were quantified."""

from __future__ import annotations

from typing import Any

from curvote.chain.view import View
from curvote.protocols.labels.packing import unpacked


def final(view: View) -> Any:
    """Return the model of the first repetition."""
    return unpacked(view.columns("fit", "estimator")["model"][0])
