"""Stage evaluate: each evaluation client judges one classifier, in one noised bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.mrma.tables import WEAK_ARMS
from curvote.protocols.poll import dealt, poll
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the vote's budget and the probability that a bit is told as it is."""
    epsilon = params["epsilon"]
    return {"epsilon": epsilon, "keep": BinaryRR(epsilon=epsilon).keep}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``votes``: counts for each weak classifier, no client."""
    return {"votes": [_votes(replicate, inputs, params) for replicate in replicates]}


def _votes(replicate: int, inputs: Inputs, params: Params) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    features, labels = clients.judged(params["project.judge"], "vote")
    coef, intercept = _weak(inputs["train"].columns("weak", replicate))
    place = params["seed"], "evaluate", replicate
    judge = dealt(place, len(labels), len(coef))
    voters = features, labels
    counts = poll(place, voters, (coef, intercept), judge, params["epsilon"])
    return {"learner": np.arange(len(coef))} | counts


def _weak(rows: Columns) -> tuple[np.ndarray, np.ndarray]:
    weak = rows["arm"] == WEAK_ARMS.index("weak")
    return rows["coef"][weak], rows["intercept"][weak]
