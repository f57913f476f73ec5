"""Stage combine: reversal and averaging once more, over the servers' classifiers."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.mrma import aggregate


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the rule that turns utilities into weights."""
    cutoff = {"aggregate.cutoff": params["federation.cutoff"]}
    return aggregate.facts(inputs, {**params, **cutoff})


def one(context: StageContext) -> Rows:
    """Return the table ``ensemble``: one row for each classifier a server accepted.

    It is the single server's rule with the cutoff r0* (MRMA section 3.6). Without an
    exchange (``single``) nobody votes again, and the own classifier stands.
    """
    votes = context.rows("reevaluate", "votes")
    if context.params["federation.split"] == "single":
        return {"ensemble": _single_ensemble(votes)}
    epsilon = context.inputs["reevaluate"].metadata["epsilon"]
    return {"ensemble": aggregate.ensemble_columns(votes, epsilon, context.metadata)}


def _single_ensemble(votes: Columns) -> Columns:
    full_weight, zero, flag = np.ones(1), np.zeros(1), np.zeros(1, dtype=bool)
    return {
        "learner": votes["learner"],
        "utility": full_weight / 2,
        "standard_error": zero,
        "reversed": flag,
        "weight": full_weight,
        "none_passed": flag,
        "weight_ma": full_weight,
        "none_passed_ma": flag,
    }
