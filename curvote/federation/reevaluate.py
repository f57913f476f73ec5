"""Stage reevaluate: a server's remaining voters judge the classifiers it accepted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.federation.poll import asked, facts, remaining, votes
from curvote.protocols.message import dealt
from curvote.protocols.study import clients_of
from curvote.task import Candidates

__all__ = ["facts", "one"]


def one(here: Here) -> Rows:
    """Return the table ``votes``: learner is the server that offered a classifier."""
    clients, offers = clients_of(here), here.rows("exchange", "offers")
    kept = offers["accepted"]
    up = Candidates(offers["coef"][kept], offers["intercept"][kept])
    task = replace(asked(here.inputs, here.params), candidates=up)
    voters = remaining(here, len(clients.roles["vote"]))
    judge = np.asarray(dealt(task, len(voters), here.generator("split")))
    counts = votes(here, task, clients, voters, judge)
    return {"votes": counts | {"learner": offers["sender"][kept]}}
