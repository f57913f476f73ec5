"""Stage combine: reversal and averaging once more, over the servers' classifiers."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.mrma import aggregate


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the rule that turns utilities into weights."""
    second = {"aggregate.cutoff": params["federation.cutoff"]}
    return aggregate.facts(inputs, {**params, **second})


def one(here: Here) -> Rows:
    """Return the table ``ensemble``: one row for each classifier a server accepted.

    It is the single server's rule with the cutoff r0* (MRMA section 3.6). Without an
    exchange (``single``) nobody votes again, and the own classifier stands.
    """
    votes = here.rows("reevaluate", "votes")
    if here.params["federation.split"] == "single":
        return {"ensemble": _alone(votes)}
    epsilon = here.inputs["reevaluate"].facts["epsilon"]
    return {"ensemble": aggregate.ensemble(votes, epsilon, here.facts)}


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
