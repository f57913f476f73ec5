"""Stage descend: batch after batch reports its gradients at what came of the last.

All rounds are one stage of a study. A release would be a stage for each, and a system
declares its stages before any configuration says how many rounds there are.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.chain.streams import of_block
from curvote.protocols.message import Known
from curvote.protocols.sgd.messages import Gradient, at, gradients
from curvote.protocols.stages.drawn import asked
from curvote.protocols.stages.stated import facts_of
from curvote.protocols.study import clients_of
from curvote.server.gradient import stepped
from curvote.task import Task

GRADIENT: Final = Gradient()


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what all rounds share of their tasks, as the server reads it."""
    return facts_of(GRADIENT, inputs, params)


def one(here: Here) -> Rows:
    """Return the table ``gradients``: those of each round in random order.

    Who is in which batch follows from the roles, which everybody knows.
    """
    task, clients = asked(here, GRADIENT), clients_of(here)
    given, sent = gradients(task), []
    rows = GRADIENT.senders.rows(clients.roles)
    for number, batch in _batches(rows, here.params["sgd.rounds"]):
        order = here.generator("shuffle", block=number).permutation(len(batch))
        known = clients.known(batch[order])
        sent.append(_reported(here, at(task, given.coef), known, number))
        reports = sent[-1]["gradient"]
        given = stepped(given, reports, task.epsilon, here.params["sgd.rate"])
    return {"gradients": {k: np.concatenate([s[k] for s in sent]) for k in sent[0]}}


def _batches(rows: NDArray[np.int64], rounds: int) -> enumerate[NDArray[np.int64]]:
    """Return the clients of each round, counted from 1: sizes differ by 1."""
    return enumerate(np.array_split(rows, rounds), start=1)


def _reported(here: Here, task: Task, known: Known, number: int) -> Columns:
    """Return one batch's rows of table ``gradients``."""
    # One stream for each round, which stands where others have blocks of clients.
    noise = of_block(here.params["seed"], here.stage, here.number, number)
    sent = GRADIENT.gather(task, GRADIENT.draw(task, known, noise))
    return {"round": np.full(len(known.labels), number), **sent}
