"""Stage privatize: the training clients' reports, and in which arrival each came."""

from __future__ import annotations

from typing import Final

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.mrma.messages import Report
from curvote.protocols.online.arrivals import client_arrivals
from curvote.protocols.stages.drawn import draw_messages, draw_stage, study_task
from curvote.protocols.study import study_clients

REPORT_MESSAGE: Final = Report()
facts, _ = draw_stage(REPORT_MESSAGE)


def one(context: StageContext) -> Rows:
    """Return the table ``arriving``: noised, no client id, shuffled.

    Every training client reports; an arrival reads only its own.
    """
    clients = study_clients(context)
    rows = context.generator("shuffle").permutation(clients.roles["train"])
    messages = draw_messages(
        context,
        REPORT_MESSAGE,
        study_task(context, REPORT_MESSAGE),
        clients.data_of(rows),
    )
    return {"arriving": {"arrival": client_arrivals(context)[rows]} | messages}
