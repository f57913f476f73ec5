"""Stage privatize: the training clients' reports, and the voters' for comparison."""

from __future__ import annotations

from typing import Final

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols.mrma.messages import Report
from curvote.protocols.mrma.tables import REPORT_VARIANTS
from curvote.protocols.roles import EVERYBODY
from curvote.protocols.stages.drawn import asked, by, noised
from curvote.protocols.study import clients_of

REPORT: Final = Report()
facts, _ = by(REPORT)


def one(here: Here) -> Rows:
    """Return the table ``reports``: noised, no client id, shuffled."""
    clients, task = clients_of(here), asked(here, REPORT)
    rows = EVERYBODY.rows(clients.roles)  # who trains, then who votes
    sent = noised(here, REPORT, task, clients.known(rows))
    order = here.generator("shuffle").permutation(len(rows))
    reports = REPORT.gather(task, {name: own[order] for name, own in sent.items()})
    pooled = order >= len(clients.roles["train"])
    names = [REPORT_VARIANTS.index(name) for name in ("pooled", "mrma")]
    return {"reports": reports | {"arm": np.where(pooled, *names).astype(np.int8)}}
