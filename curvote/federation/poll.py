"""Who judges what: voters serve their server's own classifiers and foreign ones."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params
from curvote.protocols.mrma.messages import Vote
from curvote.protocols.stages.drawn import noised
from curvote.protocols.stages.stated import facts_of, stated
from curvote.protocols.study import Clients
from curvote.task import Task

Index = NDArray[np.int64]
VOTE: Final = Vote()


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is public of a vote, such as what it spends."""
    return facts_of(VOTE, inputs, _each(params))


def asked(inputs: Inputs, params: Params) -> Task:
    """Return what a voter is asked, but for the candidates."""
    return stated(VOTE, inputs, _each(params))


def _each(params: Params) -> Params:
    """Return the settings of one vote: half of epsilon where a client has two."""
    votes = 2 if params["federation.split"] == "budget" else 1
    return {**params, "epsilon": params["epsilon"] / votes}


def votes(
    here: Here, task: Task, clients: Clients, voters: Index, judge: Index
) -> Columns:
    """Return the table ``votes``: counts for each candidate, no client.

    ``voters`` says by position which evaluation clients vote, ``judge`` on which one.
    """
    known = clients.known(clients.roles["vote"][voters], judge)
    return VOTE.gather(task, noised(here, VOTE, task, known))


def parts(here: Here, voters: int) -> Index:
    """Return the part, (voters,), that each voter of one server belongs to.

    Part b below B = ``train.count`` judges the own weak classifier b. Under ``clients``
    there are K more parts, which judge what the servers offer; sizes differ by 1.
    """
    count = here.params["train.count"]
    if here.params["federation.split"] == "clients":
        count += here.params["servers"]
    rng = here.generator("split", "evaluate")
    return np.asarray(rng.permutation(np.arange(voters) % count))


def remaining(here: Here, voters: int) -> Index:
    """Return the voters, by position, who judge the servers' offers: maybe nobody."""
    if here.params["federation.split"] == "budget":
        return np.arange(voters)
    return np.flatnonzero(parts(here, voters) >= here.params["train.count"])
