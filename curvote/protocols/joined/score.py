"""Stage report of the join: true test errors of both, of reports alone, of nobody."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols import by_class
from curvote.protocols.classifiers import named
from curvote.protocols.direct.score import facts as arm
from curvote.protocols.majority.elect import wrong
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name of the method that the reports alone are: the arm."""
    return arm(inputs, params)


def one(here: Here) -> Rows:
    """Return the table ``scores``: ``joined``, the arm, and the majority.

    Of K > 2 classes each is told of, by ``joined``.
    """
    clients = clients_of(here)
    features, truth = clients.told("rescaled", "test")
    tables = {"joined": "classifier", here.facts["method"]: "reports_alone"}
    said = {
        method: named(features, here.rows("aggregate", table))
        for method, table in tables.items()
    }
    errors = {method: float(np.mean(own != truth)) for method, own in said.items()}
    rows = score_rows({"majority": wrong(here, clients), **errors})
    classes = here.inputs["project"].facts["classes"]
    return by_class.told(rows, "joined", truth, said["joined"], classes)
