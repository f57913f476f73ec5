"""Stages of `counts`, `stump` and `tree`."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Metadata, Params


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the length of z, and its rescaling, which names the assumed law."""
    public = inputs["project"].metadata
    return {"d": public["d"], "rescale": public["encoding"]["rescale"]}
