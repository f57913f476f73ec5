"""Stage privatize where the labels are here: each leaves as one code, once."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.entropy import SystemEntropy
from curvote.labels.task import ASKS, Task
from curvote.protocols.labels.asked import task_of
from curvote.protocols.labels.messages import MESSAGES, RECORD, record_names
from curvote.protocols.labels.stages.privatize import client_labels
from curvote.protocols.stages.released import sending_rows as senders
from curvote.protocols.stages.released import task_metadata

__all__ = ["facts", "one", "task_of"]


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task, which is all that a client obeys."""
    return task_metadata(task_of(inputs, params))


def one(context: StageContext) -> Rows:
    """Return the table ``codes``: noise from the operating system."""
    kind, task = MESSAGES[ASKS], Task.from_json(context.metadata["task"])
    clients = context.rows("ingest", "clients")
    rows = senders(clients, context.params)
    messages = kind.draw(task, client_labels(clients, rows, {}), SystemEntropy())
    return {
        kind.table: kind.collect(
            task, {RECORD: record_names(clients)[rows], **messages}
        )
    }
