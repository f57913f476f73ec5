"""Stage train of `votes`: random directions, from no client's data.

Direction b is judged about split b mod Q of the classes (`questions.halving_code`); two
classes have one. Errors in % of 10,000 clients, d = 8, at epsilon 1 / 2 / 5: of ten
classes 26 / 10 / 5, of five 11 / 6 / 5. Where a direction is judged about one class
against the rest, 55 / 32 / 22 and 16 / 9 / 7; where a line for each class is, of which
the largest must be right, 62 / 37 / 13 and 21 / 9 / 7 (`benchmarks.bench_questions`).
"""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.classifiers import weak_columns
from curvote.protocols.direct.arms import make_directions
from curvote.protocols.questions import halving_code


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the length of z and the public constant beside it."""
    public = inputs["project"].metadata
    d, rescale = public["d"], public["encoding"]["rescale"]
    beside = make_directions("mean", d, rescale, params["direct.intercept"]).intercept
    return {
        "d": d,
        "intercept": float(beside),
        "splits": len(halving_code(len(public["classes"]))),
    }


def one(context: StageContext) -> Rows:
    """Return the table ``weak``: a row a direction.

    They are classifiers of z whose (intercept/s, coef) is uniform on the sphere.
    """
    count = context.params["votes.directions"] * context.metadata["splits"]
    shape = count, context.metadata["d"] + 1
    w = context.generator("draw").standard_normal(shape)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return {"weak": weak_columns(w[:, 1:], context.metadata["intercept"] * w[:, 0], 0)}
