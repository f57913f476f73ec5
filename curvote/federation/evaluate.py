"""Stage evaluate of many servers: a server's voters judge its own weak classifiers."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.federation.poll import VOTE, asked, facts, parts, votes
from curvote.protocols.study import clients_of

__all__ = ["facts", "one"]


def one(here: Here) -> Rows:
    """Return the table ``votes``: counts for each own weak classifier, no client."""
    clients = clients_of(here)
    task = VOTE.task(asked(here.inputs, here.params), here.rows)
    part = parts(here, len(clients.roles["vote"]))
    own = np.flatnonzero(part < here.params["train.count"])
    return {"votes": votes(here, task, clients, own, part[own])}
