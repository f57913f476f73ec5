"""Stage aggregate of `votes`: MRMA's, with every direction better than chance."""

from __future__ import annotations

from typing import Final

from curvote.chain.stage import Inputs, Metadata, Params
from curvote.protocols.mrma.aggregate import one

__all__ = ["facts", "one"]

# No direction is good by itself: a higher cutoff would throw away what its sum needs.
DIRECTION_RULE: Final = {"cutoff": 0.5, "when_none_pass": "soft", "weights": "excess"}


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the rule that turns utilities into weights."""
    return dict(DIRECTION_RULE)
