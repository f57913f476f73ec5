"""A stage of production where clients that are here release their message, once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows, Source
from curvote.entropy import SystemEntropy, permutation
from curvote.protocols.message import Message, dealt, knowledge, messages
from curvote.protocols.roles import played
from curvote.protocols.stages.stated import public, stated
from curvote.representation.basis import roughness
from curvote.task import Asked, Task

# Of a vector, moved at once: what one line of the processor's cache holds.
_COLUMNS: Final = 8


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the published task, which is all that a client obeys."""
    return described(task_of(inputs, params))


def described(task: Asked) -> Facts:
    """Return a task as facts: in whole, and what server-side stages read of it."""
    named = {"task": task.to_json(), "task_digest": task.digest()}
    if not isinstance(task, Task):
        return named
    rough = {"roughness": roughness(task.encoding.projection).tolist()}
    return named | public(task) | rough


def one(here: Here) -> Rows:
    """Return the message's table: noise from the operating system, no client id."""
    task, kind = Task.from_json(here.facts["task"]), message(here.params)
    clients = here.rows("ingest", "clients")
    mine = rows(clients, here.params)
    judge = dealt(task, len(mine), here.generator("split"))
    known = knowledge(task, clients["curve"][mine], clients["label"][mine], judge)
    drawn = kind.draw(task, known, SystemEntropy())
    # The order of the rows is drawn anew: it must not tell whose message is whose.
    order = permutation(len(mine), SystemEntropy())
    shuffled = {name: _ordered(values, order) for name, values in drawn.items()}
    return {kind.table: kind.gather(task, shuffled)}


def _ordered(values: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
    """Return the rows in an order; a table of vectors is not held twice for it."""
    if values.ndim == 1:
        return values[order]
    for start in range(0, values.shape[-1], _COLUMNS):
        part = values[..., start : start + _COLUMNS]
        part[:] = part[order]
    return values


def message(params: Params) -> Message:
    """Return the message that leaves the clients in this stage."""
    return messages(params["protocol"])[params["message"]]


def rows(clients: Columns, params: Params) -> NDArray[np.int64]:
    """Return the rows of the clients who release in this stage."""
    return message(params).senders.rows(played(clients, params, 0))


def task_of(inputs: Inputs, params: Params) -> Task:
    """Return the task of this round: the first states it, the later ones go on."""
    earlier = [source.facts["task"] for source in inputs.values() if _asked(source)]
    given = Task.from_json(earlier[-1]) if earlier else _stated(inputs, params)

    def read(stage: str, table: str) -> Columns:
        return inputs[stage].columns(table, (0,))

    asked: Task = message(params).task(given, read)
    return asked


def _asked(source: Source) -> bool:
    return "task" in source.facts


def _stated(inputs: Inputs, params: Params) -> Task:
    task = stated(message(params), inputs, params)
    constants = inputs["project"].columns("constants", (0,))
    named = dict(zip(constants["name"], constants["value"], strict=True))
    return replace(task, encoding=replace(task.encoding, constants=named))
