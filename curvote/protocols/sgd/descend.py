"""Stage descend: batch after batch reports its gradients at what came of the last.

All rounds are one stage of a study. A release would be a stage for each, and a system
declares its stages before any configuration says how many rounds there are.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.chain.streams import block_noise
from curvote.protocols.message import ClientData
from curvote.protocols.sgd.messages import Gradient, task_at, task_gradients
from curvote.protocols.stages.drawn import study_task
from curvote.protocols.stages.stated import study_metadata
from curvote.protocols.study import study_clients
from curvote.server.gradient import gradient_step
from curvote.task import Task

GRADIENT_MESSAGE: Final = Gradient()


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the metadata that all rounds share."""
    return study_metadata(GRADIENT_MESSAGE, inputs, params)


def one(context: StageContext) -> Rows:
    """Return the table ``gradients``: those of each round in random order.

    Who is in which batch follows from the roles, which everybody knows.
    """
    task, clients = study_task(context, GRADIENT_MESSAGE), study_clients(context)
    current, batches = task_gradients(task), []
    rows = GRADIENT_MESSAGE.senders.rows(clients.roles)
    for number, batch in _split_batches(rows, context.params["sgd.rounds"]):
        order = context.generator("shuffle", block=number).permutation(len(batch))
        data = clients.data_of(batch[order])
        batches.append(
            _report_batch(context, task_at(task, current.coef), data, number)
        )
        reports = batches[-1]["gradient"]
        current = gradient_step(
            current, reports, task.epsilon, context.params["sgd.rate"]
        )
    return {
        "gradients": {k: np.concatenate([s[k] for s in batches]) for k in batches[0]}
    }


def _split_batches(
    rows: NDArray[np.int64], rounds: int
) -> enumerate[NDArray[np.int64]]:
    """Yield the number, from 1, and the clients of each round."""
    return enumerate(np.array_split(rows, rounds), start=1)


def _report_batch(
    context: StageContext, task: Task, data: ClientData, number: int
) -> Columns:
    """Return one batch's rows of table ``gradients``."""
    # One stream for each round, which stands where others have blocks of clients.
    noise = block_noise(context.params["seed"], context.stage, context.number, number)
    messages = GRADIENT_MESSAGE.collect(task, GRADIENT_MESSAGE.draw(task, data, noise))
    return {"round": np.full(len(data.labels), number), **messages}
