"""Stage reevaluate: a server's remaining voters judge the classifiers it accepted."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.federation.poll import budget, remaining
from curvote.protocols.poll import dealt, poll
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the vote's budget and the probability that a bit is told as it is."""
    return budget(params)


def block(
    instances: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``votes``: learner is the server that offered a classifier."""
    votes = [_votes(i, inputs, params, facts["epsilon"]) for i in instances]
    return {"votes": votes}


def _votes(instance: int, inputs: Inputs, params: Params, epsilon: float) -> Columns:
    clients = study_clients(inputs["project"], params, instance)
    features, labels = clients.judged(params["project.judge"], "vote")
    offers = inputs["exchange"].columns("offers", instance)
    kept = offers["accepted"]
    voters = remaining(params, instance, len(labels))
    place = params["seed"], "reevaluate", instance
    counts = poll(
        place,
        (features[voters], labels[voters]),
        (offers["coef"][kept], offers["intercept"][kept]),
        dealt(place, len(voters), int(kept.sum())),
        epsilon,
    )
    return {"learner": offers["sender"][kept]} | counts
