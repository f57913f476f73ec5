"""Stage report of a study of `sgd`: its true test error, and the majority's."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Metadata, Params
from curvote.protocols.direct.score import one

__all__ = ["facts", "one"]


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the name of the one method."""
    return {"method": "sgd"}
