"""Stage combine: reversal and averaging once more, over the servers' classifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.protocols.mrma import aggregate
from curvote.protocols.stage import Tables


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the rule that turned utilities into weights."""
    return aggregate.facts(_votes(inputs), _second(params))


def block(
    instances: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``ensemble``: one row for each classifier a server accepted.

    It is the single server's rule with the cutoff r0* (MRMA section 3.6). Without an
    exchange (``single``) nobody votes again, and the own classifier stands.
    """
    if params["federation.split"] == "single":
        votes = (inputs["reevaluate"].columns("votes", i) for i in instances)
        return {"ensemble": [_alone(rows) for rows in votes]}
    return aggregate.block(instances, _votes(inputs), _second(params), facts)


def _votes(inputs: Inputs) -> Inputs:
    return {"evaluate": inputs["reevaluate"]}


def _second(params: Params) -> Params:
    return {**params, "aggregate.cutoff": params["federation.cutoff"]}


def _alone(votes: Columns) -> Columns:
    whole, nothing, no = np.ones(1), np.zeros(1), np.zeros(1, dtype=bool)
    return {
        "learner": votes["learner"],
        "utility": whole / 2,
        "standard_error": nothing,
        "reversed": no,
        "weight": whole,
        "none_passed": no,
        "weight_ma": whole,
        "none_passed_ma": no,
    }
