"""Stage train of `mrma_privunit`: each weak classifier is a mean of drawn reports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import generator
from curvote.protocols.classifiers import weak_rows
from curvote.protocols.direct.arms import from_params, handed_on
from curvote.protocols.stage import Tables
from curvote.representation.direction import Directions
from curvote.server.directions import Sum, one_round
from curvote.server.weak import draw


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["privatize"])


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``weak``: drawn as `mrma` draws (MRMA, algorithm 1)."""
    given, source = from_params(facts["d"], facts["params"]), inputs["privatize"]
    tables: Tables = {"weak": []}
    for replicate in replicates:
        directions = source.columns("directions", replicate)["direction"]
        drawn = directions[_drawn(len(directions), params, replicate)]
        tables["weak"].append(_weak(drawn, given, facts["epsilon"]))
    return tables


def _drawn(n_reports: int, params: Params, replicate: int) -> NDArray[np.int64]:
    """Return the reports of each classifier, (count, size) without repetition."""
    rng = generator(params["seed"], "train", "draw", replicate)
    return draw(rng, n_reports, params["train.count"], params["train.size"])


def _weak(drawn: NDArray[np.float64], given: Directions, epsilon: float) -> Columns:
    """Return the classifiers of ``drawn`` reports (count, size, p)."""
    lines = [one_round(Sum.of(reports), given, epsilon) for reports in drawn]
    coef, intercept = zip(*lines, strict=True)
    return weak_rows(np.array(coef), np.array(intercept), drawn.shape[1])
