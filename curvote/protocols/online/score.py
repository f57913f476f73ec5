"""Stage report of a study: the true test error of each arrival's ensemble."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.online.arrivals import arriving_clients
from curvote.protocols.scores import TestClients, score_rows

# Rows of the history: today's ensemble, and the first one, which never learned more.
HISTORY_ROWS = {"online": -1, "frozen": 0}


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: the errors on this arrival's test clients."""
    test = TestClients(
        *arriving_clients(context).features_and_signs(
            context.params["project.judge"], "test"
        )
    )
    history = context.rows("update", "history")
    error = test.error(test.decisions(history["coef"], history["intercept"]))
    errors = {method: float(error[row]) for method, row in HISTORY_ROWS.items()}
    none_passed = {m: history["none_passed"][row] for m, row in HISTORY_ROWS.items()}
    return score_rows(errors, none_passed)
