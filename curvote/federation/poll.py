"""Polls: voters judge their server's classifiers and foreign ones."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Inputs, Metadata, Params, StageContext
from curvote.protocols.mrma.messages import Vote
from curvote.protocols.stages.drawn import draw_messages
from curvote.protocols.stages.stated import configured_task, study_metadata
from curvote.protocols.study import StudyClients
from curvote.task import Task

Index = NDArray[np.int64]
VOTE_MESSAGE: Final = Vote()


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the public metadata of a vote, as its budget."""
    return study_metadata(VOTE_MESSAGE, inputs, _vote_params(params))


def vote_task(inputs: Inputs, params: Params) -> Task:
    """Return the task of a voter, without the candidates."""
    return configured_task(VOTE_MESSAGE, inputs, _vote_params(params))


def _vote_params(params: Params) -> Params:
    """Return the settings of one vote: half of epsilon where a client has two."""
    votes = 2 if params["federation.split"] == "budget" else 1
    return {**params, "epsilon": params["epsilon"] / votes}


def count_votes(
    context: StageContext,
    task: Task,
    clients: StudyClients,
    voters: Index,
    candidates: Index,
) -> Columns:
    """Return the table ``votes``: counts for each candidate, no client.

    ``voters`` says by position which evaluation clients vote, ``candidates`` on which
    one.
    """
    data = clients.data_of(clients.roles["vote"][voters], candidates)
    return VOTE_MESSAGE.collect(task, draw_messages(context, VOTE_MESSAGE, task, data))


def voter_parts(context: StageContext, voters: int) -> Index:
    """Return the part (voters,) that each voter of a server belongs to.

    Part b below B = ``train.count`` judges the own weak classifier b. Under ``clients``
    there are K more parts, which judge what the servers offer; sizes differ by 1.
    """
    count = context.params["train.count"]
    if context.params["federation.split"] == "clients":
        count += context.params["servers"]
    rng = context.generator("split", "evaluate")
    return np.asarray(rng.permutation(np.arange(voters) % count))


def remaining_voters(context: StageContext, voters: int) -> Index:
    """Return the positions of voters who judge the servers' offers."""
    if context.params["federation.split"] == "budget":
        return np.arange(voters)
    return np.flatnonzero(voter_parts(context, voters) >= context.params["train.count"])
