"""Stage report without privacy: the mean test error of the learners."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.study import clients_of


def one(here: Here) -> Rows:
    """Return the table ``scores`` with the row ``clean``."""
    test = Test(*clients_of(here).judged(here.params["project.judge"], "test"))
    made = here.rows("fit", "fitted")
    error = test.error(test.decisions(made["coef"], made["intercept"])).mean()
    return score_rows({"clean": float(error)})
