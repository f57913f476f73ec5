"""Stage evaluate of many servers: a server's voters judge its own weak classifiers."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.federation.poll import (
    VOTE_MESSAGE,
    count_votes,
    facts,
    vote_task,
    voter_parts,
)
from curvote.protocols.study import study_clients

__all__ = ["facts", "one"]


def one(context: StageContext) -> Rows:
    """Return the table ``votes``: counts for each own weak classifier, no client."""
    clients = study_clients(context)
    task = VOTE_MESSAGE.task(vote_task(context.inputs, context.params), context.rows)
    parts_of_voters = voter_parts(context, len(clients.roles["vote"]))
    voters = np.flatnonzero(parts_of_voters < context.params["train.count"])
    return {
        "votes": count_votes(context, task, clients, voters, parts_of_voters[voters])
    }
