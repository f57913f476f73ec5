"""Stage whiten: what a first round says of centre and covariance, made public."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Facts, Inputs, Params
from curvote.protocols.direct.arms import from_params, handed_on
from curvote.protocols.stage import Tables
from curvote.server.directions import Sum, whitening


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["privatize"])


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``whitening``: a row a coordinate of the second round's z."""
    given, source = from_params(facts["d"], facts["params"]), inputs["privatize"]
    tables: Tables = {"whitening": []}
    for replicate in replicates:
        total = Sum.of(source.columns("directions", replicate)["direction"])
        made = whitening(total, given, facts["epsilon"])
        tables["whitening"].append({"matrix": made.matrix, "centre": made.centre})
    return tables
