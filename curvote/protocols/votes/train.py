"""Stage train of `votes`: random directions, from no client's data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import generator
from curvote.protocols.classifiers import weak_rows
from curvote.protocols.direct.arms import vectors
from curvote.protocols.stage import Tables


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the length of z and the public constant beside it, as `direct` has it."""
    public = inputs["project"].facts
    d, rescale = public["d"], public["encoding"]["rescale"]
    beside = vectors("mean", d, rescale, params["direct.intercept"]).intercept
    return {"d": d, "intercept": float(beside)}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``weak``: a row a direction."""
    return {"weak": [_weak(replicate, params, facts) for replicate in replicates]}


def _weak(replicate: int, params: Params, facts: Facts) -> Columns:
    """Return classifiers of z whose (intercept/s, coef) is uniform on the sphere."""
    rng = generator(params["seed"], "train", "draw", replicate)
    w = rng.standard_normal((params["votes.directions"], facts["d"] + 1))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return weak_rows(w[:, 1:], facts["intercept"] * w[:, 0], 0)
