"""Stage report of volunteers alone: the true test error of their classifier."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.study import clients_of


def one(here: Here) -> Rows:
    """Return the table ``scores`` with the row ``volunteers``."""
    made = here.rows("aggregate", "classifier")
    test = Test(*clients_of(here).judged("rescaled", "test"))
    error = test.error(test.decisions(made["coef"], made["intercept"]))
    return score_rows({"volunteers": float(error[0])})
