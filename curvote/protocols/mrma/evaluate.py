"""Stage evaluate: each evaluation client judges one classifier, in one noised bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.client.vote import decisions, vote
from curvote.entropy import client_streams, generator
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.mrma.arms import WEAK_ARMS
from curvote.protocols.mrma.study import study_clients
from curvote.protocols.stage import Columns, Facts, Inputs, Params, Tables


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
    judge = _assign(params["seed"], replicate, len(labels), len(coef))
    decision = decisions(features, coef, intercept, judge)
    positive = np.empty(len(labels), dtype=bool)
    stream = (params["seed"], "evaluate", "vote", replicate)
    for part, entropy in client_streams(*stream, len(labels)):
        positive[part] = vote(decision[part], labels[part], params["epsilon"], entropy)
    return {
        "learner": np.arange(len(coef)),
        "n": np.bincount(judge, minlength=len(coef)),
        "positive": np.bincount(judge, weights=positive, minlength=len(coef)).astype(
            np.int64
        ),
    }


def _weak(rows: Columns) -> tuple[np.ndarray, np.ndarray]:
    weak = rows["arm"] == WEAK_ARMS.index("weak")
    return rows["coef"][weak], rows["intercept"][weak]


def _assign(seed: int, replicate: int, n: int, count: int) -> np.ndarray:
    """Return the classifier of each client: random parts whose sizes differ by 1."""
    rng = generator(seed, "evaluate", "split", replicate)
    return np.asarray(rng.permutation(np.arange(n) % count))
