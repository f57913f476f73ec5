"""Who judges what: voters serve their server's own classifiers and foreign ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Facts, Params
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.poll import dealt

Index = NDArray[np.int64]


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
    return dealt((params["seed"], "evaluate", instance), voters, count)


def remaining(params: Params, instance: int, voters: int) -> Index:
    """Return the voters, by position, who judge the servers' offers: maybe nobody."""
    if params["federation.split"] == "budget":
        return np.arange(voters)
    part = parts(params, instance, voters)
    return np.flatnonzero(part >= params["train.count"])


def place(params: Params, instance: int) -> tuple[int, int]:
    """Return (replicate, server) of an instance."""
    replicate, server = divmod(instance, params["servers"])
    return replicate, server


def faults(params: Params) -> Mapping[int, str]:
    """Return ``federation.faults`` by number of server, which JSON writes as text."""
    return {int(k): fault for k, fault in params["federation.faults"].items()}
