"""Stage evaluate: one arrival's voters judge the candidates and the incumbent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import sequence
from curvote.client.vote import decisions, vote
from curvote.entropy import SeededEntropy
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.online.arrivals import arriving
from curvote.protocols.online.codes import INCUMBENT
from curvote.protocols.stage import Tables

# One voter in WATCH judges the incumbent: with 400 such votes on either side of a drop
# and epsilon 1, three standard errors are a difference of 0.23 in accuracy.
WATCH = 4


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the vote's budget, and the share of voters who watch the incumbent."""
    epsilon = params["epsilon"]
    keep = BinaryRR(epsilon=epsilon).keep
    return {"epsilon": epsilon, "keep": keep, "incumbent": 1 / WATCH}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``arrival_votes``: counts for each candidate, no client.

    Candidate -1 is the incumbent: the ensemble of the arrival in which classifiers
    were last added, so that its readings compare from one arrival to the next.
    """
    return {"arrival_votes": [_votes(r, inputs, params) for r in replicates]}


def _votes(replicate: int, inputs: Inputs, params: Params) -> Columns:
    clients = arriving(inputs["project"], params, replicate)
    features, labels = clients.judged(params["project.judge"], "vote")
    learner, coef, intercept = _candidates(replicate, inputs)
    # One stream for each arrival, which stands where others have blocks of clients.
    seed, block = params["seed"], params["arrival"]
    rng = np.random.default_rng(sequence(seed, "evaluate", "split", replicate, block))
    judge = rng.permutation(_shares(len(labels), learner))
    decision = decisions(features, coef, intercept, judge)
    entropy = SeededEntropy(sequence(seed, "evaluate", "vote", replicate, block))
    positive = vote(decision, labels, params["epsilon"], entropy)
    return {
        "learner": learner,
        "n": np.bincount(judge, minlength=len(learner)),
        "positive": np.bincount(judge[positive], minlength=len(learner)),
    }


def _candidates(
    replicate: int, inputs: Inputs
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return number, coef and intercept of all that are up for a vote."""
    up = inputs["learn"].columns("candidates", replicate)
    previous = inputs.get("update@previous")
    if previous is None:
        return up["learner"], up["coef"], up["intercept"]
    history = previous.columns("history", replicate)
    office = np.flatnonzero(history["added"])[-1]
    return (
        np.append(up["learner"], INCUMBENT),
        np.vstack([up["coef"], history["coef"][office]]),
        np.append(up["intercept"], history["intercept"][office]),
    )


def _shares(n: int, learner: np.ndarray) -> np.ndarray:
    """Return n places: the incumbent's share, the rest in parts that differ by 1."""
    count = int((learner != INCUMBENT).sum())
    watch = 0 if count == len(learner) else n // WATCH
    return np.concatenate([np.arange(n - watch) % count, np.full(watch, count)])
