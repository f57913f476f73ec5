"""Stages of a study in which simulated clients release a message.

The same draws as in production, from named streams, 65,536 clients at a time. A stage's
module says which message it is::

    facts, one = by(Label())

or ``facts, portions = in_order(...)``, where messages are long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.message import ClientData, Message, assign_candidates
from curvote.protocols.stages.stated import configured_task, study_metadata
from curvote.protocols.study import study_clients
from curvote.task import AnyTask, Task

MetadataFunction = Callable[[Inputs, Params], Metadata]


def draw_stage(
    kind: Message,
) -> tuple[MetadataFunction, Callable[[StageContext], Rows]]:
    """Return the metadata and table functions of a stage that draws ``kind``.

    Rows are in random order, which is drawn after the noise.
    """

    def draw_shuffled(context: StageContext) -> Rows:
        task, clients = study_task(context, kind), study_clients(context)
        rows = kind.senders.rows(clients.roles)
        candidates = assign_candidates(task, len(rows), context.generator("split"))
        order = context.generator("shuffle").permutation(len(rows))
        messages = draw_messages(context, kind, task, clients.data_of(rows, candidates))
        shuffled = {name: values[order] for name, values in messages.items()}
        return {kind.table: kind.collect(task, shuffled)}

    return _metadata_function(kind), draw_shuffled


def draw_stage_in_portions(
    kind: Message,
) -> tuple[MetadataFunction, Callable[[StageContext], Iterator[Rows]]]:
    """Return the metadata and portion functions of a stage that draws ``kind``.

    Rows are in random order, which is drawn first: so 65,536 of them are in memory.
    """

    def draw_portions(context: StageContext) -> Iterator[Rows]:
        task, clients = study_task(context, kind), study_clients(context)
        rows = kind.senders.rows(clients.roles)
        rows = rows[context.generator("shuffle").permutation(len(rows))]
        for part, noise in context.noise(len(rows)):
            messages = kind.draw(task, clients.data_of(rows[part]), noise)
            yield {kind.table: kind.collect(task, messages)}

    return _metadata_function(kind), draw_portions


def _metadata_function(kind: Message) -> MetadataFunction:
    def task_metadata(inputs: Inputs, params: Params) -> Metadata:
        return study_metadata(kind, inputs, params)

    return task_metadata


def study_task(context: StageContext, kind: Message) -> Task:
    """Return the task of one repetition, with tables of the server filled in."""
    task: Task = kind.task(
        configured_task(kind, context.inputs, context.params), context.rows
    )
    return task


def draw_messages(
    context: StageContext,
    kind: Message,
    task: AnyTask,
    data: ClientData,
    stage: str = "",
) -> Columns:
    """Return the messages of these clients, a row each.

    The noise is this stage's, unless another one's is named: common numbers.
    """
    columns: Columns = {}
    n = len(data.labels)
    for part, noise in context.noise(n, stage):
        for name, values in kind.draw(task, data.subset(part), noise).items():
            column = columns.setdefault(
                name, np.empty((n, *values.shape[1:]), values.dtype)
            )
            column[part] = values
    return columns
