"""Stage privatize: the training clients' reports, and the voters' for comparison."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols.mrma.messages import Report
from curvote.protocols.mrma.tables import REPORT_VARIANTS
from curvote.protocols.roles import EVERYBODY
from curvote.protocols.stages.drawn import Stated, asked, by, noised
from curvote.protocols.study import clients_of


def by_everybody(kind: Report) -> tuple[Stated, Callable[[Here], Rows]]:
    """Return the functions ``facts`` and ``one`` of the stage that draws ``kind``.

    Rows say whose they are: of who trains (``mrma``), or of who votes (``pooled``).
    """
    facts, _ = by(kind)

    def one(here: Here) -> Rows:
        clients, task = clients_of(here), asked(here, kind)
        rows = EVERYBODY.rows(clients.roles)  # who trains, then who votes
        sent = noised(here, kind, task, clients.known(rows))
        order = here.generator("shuffle").permutation(len(rows))
        reports = kind.gather(task, {name: own[order] for name, own in sent.items()})
        pooled = order >= len(clients.roles["train"])
        names = [REPORT_VARIANTS.index(name) for name in ("pooled", "mrma")]
        arm = np.where(pooled, *names).astype(np.int8)
        return {kind.table: reports | {"arm": arm}}

    return facts, one


facts, one = by_everybody(Report())
