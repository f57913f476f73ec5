"""Stage privatize of a study: each client who trains releases one code of its label."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.labels.task import ASKS, Task
from curvote.protocols.labels.asked import task_of
from curvote.protocols.labels.messages import (
    MESSAGES,
    RECORD,
    CodeMessage,
    record_names,
)
from curvote.protocols.labels.records import Names
from curvote.protocols.message import ClientData
from curvote.protocols.roles import roles_of_table
from curvote.protocols.stages.drawn import draw_messages
from curvote.protocols.stages.released import task_metadata


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task: all of it is public."""
    return task_metadata(task_of(inputs, params))


def one(context: StageContext) -> Rows:
    """Return the table ``codes``."""
    return draw_codes(context, MESSAGES[ASKS])


def draw_codes(
    context: StageContext, kind: CodeMessage, priors: Columns | None = None
) -> Rows:
    """Return the codes of those who send one kind of message in a study."""
    task, clients = (
        Task.from_json(context.metadata["task"]),
        context.rows("ingest", "clients"),
    )
    rows = kind.senders.rows(roles_of_table(clients, context.params, context.number))
    names = record_names(clients)[rows]
    messages = draw_messages(
        context, kind, task, client_labels(clients, rows, priors or {})
    )
    return {kind.table: kind.collect(task, {RECORD: names, **messages})}


def client_labels(clients: Columns, rows: np.ndarray, public: Columns) -> ClientData:
    """Return the data of which codes are made: labels, and public columns."""
    nothing = np.empty((len(rows), 0))
    return ClientData(nothing, nothing, clients["label"][rows], public=public)


def sender_names(context: StageContext, kind: CodeMessage) -> Names:
    """Return the names of the records whose owners send one kind of message."""
    clients = context.rows("ingest", "clients")
    rows = kind.senders.rows(roles_of_table(clients, context.params, context.number))
    return record_names(clients)[rows]
