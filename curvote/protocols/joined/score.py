"""Stage report of the join: true test errors of both, of reports alone, of nobody."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import named
from curvote.protocols.direct.score import facts as arm
from curvote.protocols.majority.elect import wrong
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name of the method that the reports alone are: the arm."""
    return arm(inputs, params)


def one(here: Here) -> Rows:
    """Return the table ``scores``: ``joined``, the arm, and the majority."""
    clients = clients_of(here)
    features, truth = clients.told("rescaled", "test")
    tables = {"joined": "classifier", here.facts["method"]: "reports_alone"}
    errors = {
        method: float(np.mean(named(features, here.rows("aggregate", table)) != truth))
        for method, table in tables.items()
    }
    return score_rows({"majority": wrong(here, clients), **errors})
