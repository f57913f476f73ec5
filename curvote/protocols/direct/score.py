"""Stage report of a study: the true test error of one classifier, and the majority's.

Serves every protocol that ends in the table ``classifier``.
"""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols import by_class
from curvote.protocols.classifiers import named
from curvote.protocols.majority.elect import wrong
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name of the method: the arm."""
    return {"method": params["direct.arm"]}


def one(here: Here) -> Rows:
    """Return the table ``scores``: the arm and the majority; of K > 2 classes more."""
    clients, made = clients_of(here), here.rows("aggregate", "classifier")
    features, truth = clients.told("rescaled", "test")
    said, method = named(features, made), here.facts["method"]
    errors = {"majority": wrong(here, clients), method: float(np.mean(said != truth))}
    classes = here.inputs["project"].facts["classes"]
    return by_class.told(score_rows(errors), method, truth, said, classes)
