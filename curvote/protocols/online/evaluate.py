"""Stage evaluate: one arrival's voters judge the candidates and the incumbent."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.chain.streams import of_block
from curvote.protocols.mrma.messages import Vote
from curvote.protocols.online.arrivals import arriving
from curvote.protocols.online.codes import INCUMBENT
from curvote.protocols.stages.stated import facts_of, stated
from curvote.task import Candidates

VOTE: Final = Vote()
# One voter in WATCH judges the incumbent: with 400 such votes on either side of a drop
# and epsilon 1, three standard errors are a difference of 0.23 in accuracy.
WATCH = 4


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the vote's budget, and the share of voters who watch the incumbent."""
    return facts_of(VOTE, inputs, params) | {"incumbent": 1 / WATCH}


def one(here: Here) -> Rows:
    """Return the table ``arrival_votes``: counts for each candidate, no client.

    Candidate -1 is the incumbent: the ensemble of the arrival in which classifiers
    were last added, so that its readings compare from one arrival to the next.
    """
    clients, arrival = arriving(here), here.params["arrival"]
    learner, up = _candidates(here)
    task = replace(stated(VOTE, here.inputs, here.params), candidates=up)
    rows = clients.roles["vote"]
    # One stream for each arrival, which stands where others have blocks of clients.
    rng = here.generator("split", block=arrival)
    noise = of_block(here.params["seed"], here.stage, here.number, arrival)
    known = clients.known(rows, rng.permutation(_shares(len(rows), learner)))
    votes = VOTE.gather(task, VOTE.draw(task, known, noise))
    return {"arrival_votes": votes | {"learner": learner}}


def _candidates(here: Here) -> tuple[np.ndarray, Candidates]:
    """Return the numbers of all that are up for a vote, and what they are."""
    up = here.rows("learn", "candidates")
    if "update@previous" not in here.inputs:
        return up["learner"], Candidates(up["coef"], up["intercept"])
    history = here.rows("update@previous", "history")
    office = np.flatnonzero(history["added"])[-1]
    coef = np.vstack([up["coef"], history["coef"][office]])
    intercept = np.append(up["intercept"], history["intercept"][office])
    return np.append(up["learner"], INCUMBENT), Candidates(coef, intercept)


def _shares(n: int, learner: np.ndarray) -> np.ndarray:
    """Return n places: the incumbent's share, the rest in parts that differ by 1."""
    count = int((learner != INCUMBENT).sum())
    watch = 0 if count == len(learner) else n // WATCH
    return np.concatenate([np.arange(n - watch) % count, np.full(watch, count)])
