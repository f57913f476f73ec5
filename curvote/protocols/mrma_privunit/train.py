"""Stage train of `mrma_privunit`: each weak classifier is a mean of drawn reports."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import weak_rows
from curvote.protocols.direct.arms import given, handed_on
from curvote.server.directions import Sum, one_round
from curvote.server.weak import draw


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["privatize"].facts)


def one(here: Here) -> Rows:
    """Return the table ``weak``: drawn as `mrma` draws (MRMA, algorithm 1)."""
    public, params = here.facts, here.params
    reports = here.rows("privatize", "directions")["direction"]
    count, size = params["train.count"], params["train.size"]
    drawn = reports[draw(here.generator("draw"), len(reports), count, size)]
    known, epsilon = given(public), public["epsilon"]
    lines = [one_round(Sum.of(own), known, epsilon) for own in drawn]
    coef, intercept = zip(*lines, strict=True)
    return {"weak": weak_rows(np.array(coef), np.array(intercept), size)}
