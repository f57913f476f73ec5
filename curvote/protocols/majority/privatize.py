"""Stage privatize of `majority`: a noised label from everybody."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.majority.elect import noised_labels
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the mechanism and its budget, and d, the length of the classifier."""
    return {
        "d": inputs["project"].facts["d"],
        "mechanism": BinaryRR.name,
        "epsilon": params["epsilon"],
    }


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``labels``: noised, no client id, shuffled."""
    return {"labels": [_labels(replicate, inputs, params) for replicate in replicates]}


def _labels(replicate: int, inputs: Inputs, params: Params) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    noised = noised_labels(clients, params["epsilon"], params["seed"])
    return {"label": noised.astype(np.int8)}
