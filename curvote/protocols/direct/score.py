"""Stage report of a study: the true test error of one classifier, and the majority's.

Serves every protocol that ends in the table ``classifier``.
"""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import named
from curvote.protocols.majority.elect import wrong
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name of the method: the arm."""
    return {"method": params["direct.arm"]}


def one(here: Here) -> Rows:
    """Return the table ``scores``: the arm and the majority."""
    clients, made = clients_of(here), here.rows("aggregate", "classifier")
    features, truth = clients.told("rescaled", "test")
    own = float(np.mean(named(features, made) != truth))
    return score_rows({"majority": wrong(here, clients), here.facts["method"]: own})
