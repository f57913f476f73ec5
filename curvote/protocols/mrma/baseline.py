"""Stage report, for the baseline: the constant classifier that noised labels elect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.protocols.mrma.score import score_rows
from curvote.protocols.mrma.study import study_clients
from curvote.protocols.stage import Columns, Facts, Inputs, Params, Tables


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name under which the cell's rows stand."""
    return {"protocol": params["protocol"], "learner": None}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores`` with the row ``majority`` of each replicate."""
    return {"scores": [_score(r, inputs, params) for r in replicates]}


def _score(replicate: int, inputs: Inputs, params: Params) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    truth = clients.labels[clients.roles["test"]]
    noised = inputs["privatize"].columns("labels", replicate)["label"]
    guess = 1.0 if int(noised.sum()) > 0 else -1.0
    errors = {"majority": float(np.mean(truth != guess))}
    return score_rows(errors, {}, params, None)
