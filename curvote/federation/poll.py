"""Who judges what: voters serve their server's own classifiers and foreign ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from curvote.client.vote import decisions, vote
from curvote.entropy import client_streams, generator
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.stage import Columns, Facts, Params

Array = NDArray[np.float64]
Index = NDArray[np.int64]

SPLITS = ("clients", "budget", "single")


def budget(params: Params) -> Facts:
    """Return what one vote spends, and the probability that a bit is told as it is.

    Where a client is asked twice (``budget``), each vote has half of its epsilon.
    """
    asked = 2 if params["federation.split"] == "budget" else 1
    epsilon = params["epsilon"] / asked
    return {"epsilon": epsilon, "keep": BinaryRR(epsilon=epsilon).keep}


def parts(params: Params, instance: int, voters: int) -> Index:
    """Return the part, (voters,), that each voter of one server belongs to.

    Part b below B = ``train.count`` judges the own weak classifier b. Under ``clients``
    there are K more parts, which judge what the servers offer; sizes differ by 1.
    """
    count = params["train.count"]
    if params["federation.split"] == "clients":
        count += params["servers"]
    return _dealt(params["seed"], "evaluate", instance, voters, count)


def remaining(params: Params, instance: int, voters: int) -> Index:
    """Return the voters, by position, who judge the servers' offers: maybe nobody."""
    if params["federation.split"] == "budget":
        return np.arange(voters)
    part = parts(params, instance, voters)
    return np.flatnonzero(part >= params["train.count"])


def dealt(params: Params, instance: int, voters: int, offers: int) -> Index:
    """Return the offer, below ``offers``, that each remaining voter judges."""
    return _dealt(params["seed"], "reevaluate", instance, voters, offers)


def _dealt(seed: int, stage: str, instance: int, voters: int, count: int) -> Index:
    rng = generator(seed, stage, "split", instance)
    return np.asarray(rng.permutation(np.arange(voters) % count))


def poll(
    voters: tuple[Array, Array],
    candidates: tuple[Array, Array],
    judge: Index,
    epsilon: float,
    stream: tuple[int, str, int],
) -> Columns:
    """Return the votes ``n`` and ``positive`` of each candidate, (C,) integers.

    ``voters`` are features (n, d) and labels, ``candidates`` coef (C, d) and intercept
    (C,), ``judge`` (n,) names the one that a voter judges; ``stream`` is (seed, stage,
    instance).
    """
    (features, labels), (coef, intercept) = voters, candidates
    seed, stage, instance = stream
    decision = decisions(features, coef, intercept, judge)
    positive = np.empty(len(labels), dtype=bool)
    for part, words in client_streams(seed, stage, "vote", instance, len(labels)):
        positive[part] = vote(decision[part], labels[part], epsilon, words)
    return {
        "n": np.bincount(judge, minlength=len(coef)),
        "positive": np.bincount(judge[positive], minlength=len(coef)),
    }


def place(params: Params, instance: int) -> tuple[int, int]:
    """Return (replicate, server) of an instance."""
    replicate, server = divmod(instance, params["servers"])
    return replicate, server


def faults(params: Params) -> Mapping[int, str]:
    """Return ``federation.faults`` by number of server, which JSON writes as text."""
    return {int(k): fault for k, fault in params["federation.faults"].items()}
