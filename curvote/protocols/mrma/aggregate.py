"""Stage aggregate: utilities, reversal and weights, from nothing but counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.stage import Tables
from curvote.server.averaging import weights
from curvote.server.reversal import reverse, reversed_utility
from curvote.server.utility import estimate


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the rule that turned utilities into weights."""
    return {
        "cutoff": params["aggregate.cutoff"],
        "when_none_pass": params["aggregate.when_none_pass"],
        "weights": params["aggregate.weights"],
    }


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``ensemble``: one row for each weak classifier."""
    votes = inputs["evaluate"]
    keep = BinaryRR(epsilon=votes.facts["epsilon"]).keep
    rows = [_ensemble(votes.columns("votes", r), keep, params) for r in replicates]
    return {"ensemble": rows}


def _ensemble(votes: Columns, keep: float, params: Params) -> Columns:
    """Return utilities and weights; who got no vote at all counts for nothing."""
    judged = votes["n"] > 0
    theirs = {name: column[judged] for name, column in votes.items()}
    known = _judged(theirs, keep, params)
    worst = 0.5 / (2 * keep - 1)
    nothing = {"learner": votes["learner"], "utility": 0.5, "standard_error": worst}
    # A flag is the same for all of an ensemble.
    nothing |= {name: known[name][0] for name in ("none_passed", "none_passed_ma")}
    return {
        name: _filled(judged, nothing.get(name, 0), values)
        for name, values in known.items()
    }


def _filled(judged: np.ndarray, nothing: Any, values: np.ndarray) -> np.ndarray:
    whole = np.full(len(judged), nothing, dtype=values.dtype)
    whole[judged] = values
    return whole


def _judged(votes: Columns, keep: float, params: Params) -> Columns:
    utility = estimate(votes["positive"], votes["n"], keep)
    flipped = reverse(votes["positive"], votes["n"])
    names = ("cutoff", "when_none_pass", "weights")
    rule = [params[f"aggregate.{name}"] for name in names]
    mrma, none_mrma = weights(reversed_utility(utility.value, flipped), *rule)
    ma, none_ma = weights(utility.value, *rule)
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
