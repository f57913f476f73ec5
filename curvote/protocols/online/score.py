"""Stage report of a study: the true test error of each arrival's ensemble."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.protocols.online.arrivals import arriving
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.stage import Tables

# Rows of the history: today's ensemble, and the first one, which never learned more.
METHODS = {"online": -1, "frozen": 0}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores``: the errors on this arrival's test clients."""
    return {"scores": [_scores(r, inputs, params) for r in replicates]}


def _scores(replicate: int, inputs: Inputs, params: Params) -> Columns:
    clients = arriving(inputs["project"], params, replicate)
    test = Test(*clients.judged(params["project.judge"], "test"))
    history = inputs["update"].columns("history", replicate)
    decisions = test.decisions(history["coef"], history["intercept"])
    error = test.error(decisions)
    errors = {method: float(error[row]) for method, row in METHODS.items()}
    none_passed = {m: history["none_passed"][row] for m, row in METHODS.items()}
    return score_rows(errors, none_passed)["scores"]
