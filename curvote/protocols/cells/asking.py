"""What the public knows of z before it asks: how many numbers, and their law."""

from __future__ import annotations

from curvote.chain.stage import Facts, Inputs, Params


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the length of z and how it is rescaled, which names its assumed law."""
    public = inputs["project"].facts
    return {"d": public["d"], "rescale": public["encoding"]["rescale"]}
