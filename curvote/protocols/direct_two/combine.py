"""Stage aggregate of two rounds: both label moments, read as one classifier."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.protocols.classifiers import classifier
from curvote.protocols.direct.arms import from_params, handed_on
from curvote.protocols.direct_two.refine import whitening_of
from curvote.protocols.stage import Tables
from curvote.server.directions import Sum, two_rounds


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["refine"])


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``classifier``: one row."""
    return {"classifier": [_row(replicate, inputs, facts) for replicate in replicates]}


def _row(replicate: int, inputs: Inputs, facts: Facts) -> Columns:
    first, second = (
        Sum.of(inputs[stage].columns("directions", replicate)["direction"])
        for stage in ("privatize", "refine")
    )
    made = whitening_of(inputs["whiten"], replicate)
    given = from_params(facts["d"], facts["params"])
    line = two_rounds((first, second), made, given, facts["epsilon"])
    return classifier(line, first.n + second.n)
