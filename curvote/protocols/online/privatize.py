"""Stage privatize: the training clients' reports, and in which arrival each came."""

from __future__ import annotations

from typing import Final

from curvote.chain.stage import Here, Rows
from curvote.protocols.mrma.messages import Report
from curvote.protocols.online.arrivals import arrival_of
from curvote.protocols.stages.drawn import asked, by, noised
from curvote.protocols.study import clients_of

REPORT: Final = Report()
facts, _ = by(REPORT)


def one(here: Here) -> Rows:
    """Return the table ``arriving``: noised, no client id, shuffled.

    Every training client reports; an arrival reads only its own.
    """
    clients = clients_of(here)
    rows = here.generator("shuffle").permutation(clients.roles["train"])
    sent = noised(here, REPORT, asked(here, REPORT), clients.known(rows))
    return {"arriving": {"arrival": arrival_of(here)[rows]} | sent}
