"""Stage evaluate of many servers: a server's voters judge its own weak classifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.federation.poll import budget, parts
from curvote.protocols.poll import poll
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the vote's budget and the probability that a bit is told as it is."""
    return budget(params)


def block(
    instances: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``votes``: counts for each own weak classifier, no client."""
    votes = [_votes(i, inputs, params, facts["epsilon"]) for i in instances]
    return {"votes": votes}


def _votes(instance: int, inputs: Inputs, params: Params, epsilon: float) -> Columns:
    clients = study_clients(inputs["project"], params, instance)
    features, labels = clients.judged(params["project.judge"], "vote")
    weak = inputs["train"].columns("weak", instance)
    part = parts(params, instance, len(labels))
    own = np.flatnonzero(part < len(weak["coef"]))
    counts = poll(
        (params["seed"], "evaluate", instance),
        (features[own], labels[own]),
        (weak["coef"], weak["intercept"]),
        part[own],
        epsilon,
    )
    return {"learner": np.arange(len(weak["coef"]))} | counts
