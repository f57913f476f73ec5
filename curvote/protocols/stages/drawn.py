"""A stage of a study where simulated clients release a message: seeded noise.

The same draws as in production, from named streams, 65,536 clients at a time. A stage's
module says which message it is::

    facts, one = by(Label())

or ``facts, portions = in_order(...)``, where messages are long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.message import Known, Message, dealt
from curvote.protocols.stages.stated import facts_of, stated
from curvote.protocols.study import clients_of
from curvote.task import Asked, Task

Stated = Callable[[Inputs, Params], Facts]


def by(kind: Message) -> tuple[Stated, Callable[[Here], Rows]]:
    """Return the functions ``facts`` and ``one`` of the stage that draws ``kind``.

    Rows are in random order, which is drawn after the noise.
    """

    def one(here: Here) -> Rows:
        task, clients = asked(here, kind), clients_of(here)
        rows = kind.senders.rows(clients.roles)
        judge = dealt(task, len(rows), here.generator("split"))
        order = here.generator("shuffle").permutation(len(rows))
        sent = noised(here, kind, task, clients.known(rows, judge))
        shuffled = {name: values[order] for name, values in sent.items()}
        return {kind.table: kind.gather(task, shuffled)}

    return _stated(kind), one


def in_order(kind: Message) -> tuple[Stated, Callable[[Here], Iterator[Rows]]]:
    """Return the functions ``facts`` and ``portions`` of the stage that draws ``kind``.

    Rows are in random order, which is drawn first: so 65,536 of them are in memory.
    """

    def portions(here: Here) -> Iterator[Rows]:
        task, clients = asked(here, kind), clients_of(here)
        rows = kind.senders.rows(clients.roles)
        rows = rows[here.generator("shuffle").permutation(len(rows))]
        for part, noise in here.noise(len(rows)):
            sent = kind.draw(task, clients.known(rows[part]), noise)
            yield {kind.table: kind.gather(task, sent)}

    return _stated(kind), portions


def _stated(kind: Message) -> Stated:
    def facts(inputs: Inputs, params: Params) -> Facts:
        return facts_of(kind, inputs, params)

    return facts


def asked(here: Here, kind: Message) -> Task:
    """Return the task of one repetition, what the server's tables say filled in."""
    task: Task = kind.task(stated(kind, here.inputs, here.params), here.rows)
    return task


def noised(
    here: Here, kind: Message, task: Asked, known: Known, stage: str = ""
) -> Columns:
    """Return the messages of these clients, a row each; all of them stand once.

    The noise is this stage's, unless another one's is named: common numbers.
    """
    found: Columns = {}
    n = len(known.labels)
    for part, noise in here.noise(n, stage):
        for name, drawn in kind.draw(task, known.of(part), noise).items():
            whole = found.setdefault(name, np.empty((n, *drawn.shape[1:]), drawn.dtype))
            whole[part] = drawn
    return found
