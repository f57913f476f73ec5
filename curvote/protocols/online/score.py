"""Stage report of a study: the true test error of each arrival's ensemble."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.online.arrivals import arriving
from curvote.protocols.scores import Test, score_rows

# Rows of the history: today's ensemble, and the first one, which never learned more.
METHODS = {"online": -1, "frozen": 0}


def one(here: Here) -> Rows:
    """Return the table ``scores``: the errors on this arrival's test clients."""
    test = Test(*arriving(here).judged(here.params["project.judge"], "test"))
    history = here.rows("update", "history")
    error = test.error(test.decisions(history["coef"], history["intercept"]))
    errors = {method: float(error[row]) for method, row in METHODS.items()}
    none_passed = {m: history["none_passed"][row] for m, row in METHODS.items()}
    return score_rows(errors, none_passed)
