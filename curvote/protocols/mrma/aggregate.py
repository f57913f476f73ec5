"""Stage aggregate: utilities, reversal and weights, from nothing but counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.server.averaging import weights
from curvote.server.reversal import reverse, reversed_utility
from curvote.server.utility import estimate

RULE = ("cutoff", "when_none_pass", "weights")


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the rule that turns utilities into weights."""
    return {name: params[f"aggregate.{name}"] for name in RULE}


def one(here: Here) -> Rows:
    """Return the table ``ensemble``: one row for each weak classifier."""
    epsilon = here.inputs["evaluate"].facts["epsilon"]
    return {"ensemble": ensemble(here.rows("evaluate", "votes"), epsilon, here.facts)}


def ensemble(votes: Columns, epsilon: float, rule: Facts) -> Columns:
    """Return the table ``ensemble``; who got no vote at all counts for nothing.

    ``votes`` are the counts of each classifier (B,), ``epsilon`` is a vote's.
    """
    keep = BinaryRR(epsilon=epsilon).keep
    asked = votes["n"] > 0
    known = _judged({name: own[asked] for name, own in votes.items()}, keep, rule)
    worst = 0.5 / (2 * keep - 1)
    nothing = {"learner": votes["learner"], "utility": 0.5, "standard_error": worst}
    # A flag is the same for all of an ensemble.
    nothing |= {name: known[name][0] for name in ("none_passed", "none_passed_ma")}
    return {
        name: _filled(asked, nothing.get(name, 0), values)
        for name, values in known.items()
    }


def _filled(asked: np.ndarray, nothing: Any, values: np.ndarray) -> np.ndarray:
    whole = np.full(len(asked), nothing, dtype=values.dtype)
    whole[asked] = values
    return whole


def _judged(votes: Columns, keep: float, rule: Facts) -> Columns:
    utility = estimate(votes["positive"], votes["n"], keep)
    flipped = reverse(votes["positive"], votes["n"])
    how = [rule[name] for name in RULE]
    mrma, none_mrma = weights(reversed_utility(utility.value, flipped), *how)
    ma, none_ma = weights(utility.value, *how)
    return {
        "learner": votes["learner"],
        "utility": utility.value,
        "standard_error": utility.standard_error,
        "reversed": flipped,
        "weight": mrma,
        "none_passed": np.full(len(mrma), none_mrma),
        "weight_ma": ma,
        "none_passed_ma": np.full(len(ma), none_ma),
    }
