"""Stage privatize of a study: each client who trains releases one code of its label."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.labels.task import ASKS, Task
from curvote.protocols.labels.asked import task_of
from curvote.protocols.labels.messages import MESSAGES, RECORD, CodeMessage, names_of
from curvote.protocols.labels.records import Names
from curvote.protocols.message import Known
from curvote.protocols.roles import played
from curvote.protocols.stages.drawn import noised
from curvote.protocols.stages.released import described


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is asked: all of it is public."""
    return described(task_of(inputs, params))


def one(here: Here) -> Rows:
    """Return the table ``codes``."""
    return drawn(here, MESSAGES[ASKS])


def drawn(here: Here, kind: CodeMessage, priors: Columns | None = None) -> Rows:
    """Return the codes of those who send one kind of message in a study."""
    task, clients = Task.from_json(here.facts["task"]), here.rows("ingest", "clients")
    rows = kind.senders.rows(played(clients, here.params, here.number))
    names = names_of(clients)[rows]
    sent = noised(here, kind, task, known(clients, rows, priors or {}))
    return {kind.table: kind.gather(task, {RECORD: names, **sent})}


def known(clients: Columns, rows: np.ndarray, public: Columns) -> Known:
    """Return what some clients know of which a code may be made: their labels."""
    nothing = np.empty((len(rows), 0))
    return Known(nothing, nothing, clients["label"][rows], public=public)


def senders(here: Here, kind: CodeMessage) -> Names:
    """Return the names of the records whose owners send one kind of message."""
    clients = here.rows("ingest", "clients")
    rows = kind.senders.rows(played(clients, here.params, here.number))
    return names_of(clients)[rows]
