"""Stage evaluate of `votes`: everybody judges one direction, in one noised bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.protocols.mrma.evaluate import facts
from curvote.protocols.mrma.score import arm
from curvote.protocols.poll import dealt, poll
from curvote.protocols.roles import EVERYBODY
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients

__all__ = ["block", "facts"]


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``votes``: counts for each direction, no client."""
    return {"votes": [_votes(r, inputs, params, facts["epsilon"]) for r in replicates]}


def _votes(replicate: int, inputs: Inputs, params: Params, epsilon: float) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    rows = EVERYBODY.rows(clients.roles)
    voters = clients.z[rows], clients.labels[rows]
    drawn = arm(inputs["train"].columns("weak", replicate), "weak")
    place = params["seed"], "evaluate", replicate
    judge = dealt(place, len(rows), len(drawn[0]))
    return {"learner": np.arange(len(drawn[0]))} | poll(
        place, voters, drawn, judge, epsilon
    )
