"""Stage aggregate of `votes`: MRMA's, with every direction better than chance."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Facts, Inputs, Params
from curvote.protocols.mrma import aggregate
from curvote.protocols.stage import Tables

# No direction is good by itself: a higher cutoff would throw away what its sum needs.
RULE = {
    "aggregate.cutoff": 0.5,
    "aggregate.when_none_pass": "soft",
    "aggregate.weights": "excess",
}


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the rule that turned utilities into weights."""
    return aggregate.facts(inputs, RULE)


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``ensemble``: weights are utilities after reversal, less 1/2."""
    return aggregate.block(replicates, inputs, RULE, facts)
