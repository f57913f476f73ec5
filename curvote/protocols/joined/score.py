"""Stage report of the join: true test errors of both, of reports alone, of nobody."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols import by_class
from curvote.protocols.classifiers import named
from curvote.protocols.direct.score import facts as of_direct
from curvote.protocols.majority.elect import wrong
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name of the method that the reports alone are: the arm."""
    return of_direct(inputs, params)


def one(here: Here) -> Rows:
    """Return the table ``scores``: ``joined``, the arm, and the majority."""
    clients = clients_of(here)
    features, truth = clients.told("rescaled", "test")
    alone = named(features, here.rows("aggregate", "reports_alone"))
    both = named(features, here.rows("aggregate", "classifier"))
    errors = {
        "majority": wrong(here, clients),
        here.facts["method"]: float(np.mean(alone != truth)),
        "joined": float(np.mean(both != truth)),
    }
    classes = here.inputs["project"].facts["classes"]
    return by_class.told(score_rows(errors), "joined", truth, both, classes)
