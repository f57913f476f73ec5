"""Stage privatize where the labels are here: each leaves as one code, once."""

from __future__ import annotations

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.entropy import SystemEntropy
from curvote.labels.task import ASKS, Task
from curvote.protocols.labels.asked import task_of
from curvote.protocols.labels.messages import MESSAGES, RECORD, names_of
from curvote.protocols.labels.stages.privatize import known
from curvote.protocols.stages.released import described
from curvote.protocols.stages.released import rows as senders

__all__ = ["facts", "one", "task_of"]


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the published task, which is all that a client obeys."""
    return described(task_of(inputs, params))


def one(here: Here) -> Rows:
    """Return the table ``codes``: noise from the operating system."""
    kind, task = MESSAGES[ASKS], Task.from_json(here.facts["task"])
    clients = here.rows("ingest", "clients")
    rows = senders(clients, here.params)
    sent = kind.draw(task, known(clients, rows, {}), SystemEntropy())
    return {kind.table: kind.gather(task, {RECORD: names_of(clients)[rows], **sent})}
