"""Stage aggregate: utilities, reversal and weights, from nothing but counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.server.averaging import averaging_weights
from curvote.server.reversal import reversal_mask, reversed_utility
from curvote.server.utility import estimate_utility

RULE_KEYS = ("cutoff", "when_none_pass", "weights")


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the rule that turns utilities into weights."""
    return {name: params[f"aggregate.{name}"] for name in RULE_KEYS}


def one(context: StageContext) -> Rows:
    """Return the table ``ensemble``: one row for each weak classifier."""
    epsilon = context.inputs["evaluate"].metadata["epsilon"]
    return {
        "ensemble": ensemble_columns(
            context.rows("evaluate", "votes"), epsilon, context.metadata
        )
    }


def ensemble_columns(votes: Columns, epsilon: float, rule: Metadata) -> Columns:
    """Return the table ``ensemble`` of vote counts (B,) by classifier.

    ``votes`` are the counts of each classifier (B,), ``epsilon`` is a vote's.
    """
    keep = BinaryRR(epsilon=epsilon).keep
    has_votes = votes["n"] > 0
    judged_columns = _utility_columns(
        {name: counts[has_votes] for name, counts in votes.items()}, keep, rule
    )
    largest_error = 0.5 / (2 * keep - 1)
    defaults = {
        "learner": votes["learner"],
        "utility": 0.5,
        "standard_error": largest_error,
    }
    # A flag is the same for all of an ensemble.
    defaults |= {
        name: judged_columns[name][0] for name in ("none_passed", "none_passed_ma")
    }
    return {
        name: _fill_missing(has_votes, defaults.get(name, 0), values)
        for name, values in judged_columns.items()
    }


def _fill_missing(present: np.ndarray, default: Any, values: np.ndarray) -> np.ndarray:
    full = np.full(len(present), default, dtype=values.dtype)
    full[present] = values
    return full


def _utility_columns(votes: Columns, keep: float, rule: Metadata) -> Columns:
    utility = estimate_utility(votes["positive"], votes["n"], keep)
    flipped = reversal_mask(votes["positive"], votes["n"])
    rule_values = [rule[name] for name in RULE_KEYS]
    mrma, none_mrma = averaging_weights(
        reversed_utility(utility.value, flipped), *rule_values
    )
    ma, none_ma = averaging_weights(utility.value, *rule_values)
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
