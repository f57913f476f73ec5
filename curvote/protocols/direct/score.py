"""Stage report of a study: the true test error of one classifier, and the majority's.

Serves every protocol that ends in the table ``classifier``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.protocols.classifiers import line_of
from curvote.protocols.majority.elect import error
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name of the method: the arm."""
    return {"method": params["direct.arm"]}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores``: the arm and the majority in each replicate."""
    rows = [_scores(r, inputs, params, facts["method"]) for r in replicates]
    return {"scores": rows}


def _scores(replicate: int, inputs: Inputs, params: Params, method: str) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    test = Test(*clients.judged("rescaled", "test"))
    coef, intercept = line_of(inputs["aggregate"], replicate)
    decisions = test.decisions(coef, np.atleast_1d(intercept))
    errors = {"majority": error(clients, params["epsilon"], params["seed"])}
    errors[method] = float(test.error(decisions)[0])
    return score_rows(errors)["scores"]
