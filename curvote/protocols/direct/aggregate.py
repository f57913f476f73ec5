"""Stage aggregate of one round: the mean of all reports, read as a classifier."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Facts, Inputs, Params
from curvote.protocols.classifiers import classifier
from curvote.protocols.direct.arms import from_params, handed_on
from curvote.protocols.stage import Tables
from curvote.server.directions import Sum, one_round


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["privatize"])


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``classifier``: one row."""
    given, source = from_params(facts["d"], facts["params"]), inputs["privatize"]
    sums = (Sum.of(source.columns("directions", r)["direction"]) for r in replicates)
    found = ((one_round(total, given, facts["epsilon"]), total.n) for total in sums)
    return {"classifier": [classifier(line, n) for line, n in found]}
