"""Stage reevaluate: a server's remaining voters judge the classifiers it accepted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.federation.poll import count_votes, facts, remaining_voters, vote_task
from curvote.protocols.message import assign_candidates
from curvote.protocols.study import study_clients
from curvote.task import Candidates

__all__ = ["facts", "one"]


def one(context: StageContext) -> Rows:
    """Return the table ``votes``: learner is the server that offered a classifier."""
    clients, offers = study_clients(context), context.rows("exchange", "offers")
    is_accepted = offers["accepted"]
    candidates = Candidates(
        offers["coef"][is_accepted], offers["intercept"][is_accepted]
    )
    task = replace(vote_task(context.inputs, context.params), candidates=candidates)
    voters = remaining_voters(context, len(clients.roles["vote"]))
    assigned = np.asarray(
        assign_candidates(task, len(voters), context.generator("split"))
    )
    counts = count_votes(context, task, clients, voters, assigned)
    return {"votes": counts | {"learner": offers["sender"][is_accepted]}}
