"""Stage evaluate: one arrival's voters judge the candidates and the incumbent."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.chain.streams import block_noise
from curvote.protocols.mrma.messages import Vote
from curvote.protocols.online.arrivals import arriving_clients
from curvote.protocols.online.codes import INCUMBENT
from curvote.protocols.stages.stated import configured_task, study_metadata
from curvote.task import Candidates

VOTE_MESSAGE: Final = Vote()
# One voter in WATCH judges the incumbent: with 400 such votes on either side of a drop
# and epsilon 1, three standard errors are a difference of 0.23 in accuracy.
WATCH_INTERVAL = 4


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the vote's budget, and the share of voters who watch the incumbent."""
    return study_metadata(VOTE_MESSAGE, inputs, params) | {
        "incumbent": 1 / WATCH_INTERVAL
    }


def one(context: StageContext) -> Rows:
    """Return the table ``arrival_votes``: counts for each candidate, no client.

    Candidate -1 is the incumbent: the ensemble of the arrival in which classifiers
    were last added, so that its readings compare from one arrival to the next.
    """
    clients, arrival = arriving_clients(context), context.params["arrival"]
    learner, candidates = _vote_candidates(context)
    task = replace(
        configured_task(VOTE_MESSAGE, context.inputs, context.params),
        candidates=candidates,
    )
    rows = clients.roles["vote"]
    # One stream for each arrival, which stands where others have blocks of clients.
    rng = context.generator("split", block=arrival)
    noise = block_noise(context.params["seed"], context.stage, context.number, arrival)
    data = clients.data_of(rows, rng.permutation(_candidate_shares(len(rows), learner)))
    votes = VOTE_MESSAGE.collect(task, VOTE_MESSAGE.draw(task, data, noise))
    return {"arrival_votes": votes | {"learner": learner}}


def _vote_candidates(context: StageContext) -> tuple[np.ndarray, Candidates]:
    """Return the numbers and lines of all candidates up for a vote."""
    table = context.rows("learn", "candidates")
    if "update@previous" not in context.inputs:
        return table["learner"], Candidates(table["coef"], table["intercept"])
    history = context.rows("update@previous", "history")
    incumbent = np.flatnonzero(history["added"])[-1]
    coef = np.vstack([table["coef"], history["coef"][incumbent]])
    intercept = np.append(table["intercept"], history["intercept"][incumbent])
    return np.append(table["learner"], INCUMBENT), Candidates(coef, intercept)


def _candidate_shares(n: int, learner: np.ndarray) -> np.ndarray:
    """Return candidates of n voters: the incumbent's share, then equal parts."""
    count = int((learner != INCUMBENT).sum())
    watch = 0 if count == len(learner) else n // WATCH_INTERVAL
    return np.concatenate([np.arange(n - watch) % count, np.full(watch, count)])
