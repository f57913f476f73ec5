"""Stage train of `votes`: random directions, from no client's data."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import weak_rows
from curvote.protocols.direct.arms import vectors


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the length of z and the public constant beside it, as `direct` has it."""
    public = inputs["project"].facts
    d, rescale = public["d"], public["encoding"]["rescale"]
    beside = vectors("mean", d, rescale, params["direct.intercept"]).intercept
    return {"d": d, "intercept": float(beside)}


def one(here: Here) -> Rows:
    """Return the table ``weak``: a row a direction.

    They are classifiers of z whose (intercept/s, coef) is uniform on the sphere.
    """
    shape = here.params["votes.directions"], here.facts["d"] + 1
    w = here.generator("draw").standard_normal(shape)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return {"weak": weak_rows(w[:, 1:], here.facts["intercept"] * w[:, 0], 0)}
