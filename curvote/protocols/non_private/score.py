"""Stage report without privacy: the mean test error of the learners."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols import by_class
from curvote.protocols.classifiers import named
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.study import Clients, clients_of


def one(here: Here) -> Rows:
    """Return the table ``scores`` with the row ``clean``; of K > 2 classes more."""
    clients, judge = clients_of(here), here.params["project.judge"]
    if len(here.inputs["project"].facts["classes"]) > 2:
        return _of_several(here, clients)
    test = Test(*clients.judged(judge, "test"))
    made = here.rows("fit", "fitted")
    error = test.error(test.decisions(made["coef"], made["intercept"])).mean()
    return score_rows({"clean": float(error)})


def _of_several(here: Here, clients: Clients) -> Rows:
    """Return what one learner says of more than two classes, by z."""
    features, truth = clients.told("rescaled", "test")
    said = named(features, here.rows("fit", "fitted"))
    classes = here.inputs["project"].facts["classes"]
    rows = score_rows({"clean": float(np.mean(said != truth))})
    return by_class.told(rows, "clean", truth, said, classes)
