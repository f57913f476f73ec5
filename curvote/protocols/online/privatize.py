"""Stage privatize: the training clients' reports, and in which arrival each came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import generator
from curvote.client.report import Reporter
from curvote.protocols.mrma.privatize import facts, released, reporter_of
from curvote.protocols.online.arrivals import arrival_of
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients

__all__ = ["block", "facts"]


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``arriving``: noised, no client id, shuffled."""
    reporter = reporter_of(facts["d"], params)
    return {"arriving": [_reports(r, inputs, params, reporter) for r in replicates]}


def _reports(
    replicate: int, inputs: Inputs, params: Params, reporter: Reporter
) -> Columns:
    """Release a report of every training client; an arrival reads only its own."""
    clients = study_clients(inputs["project"], params, replicate)
    shuffle = generator(params["seed"], "privatize", "shuffle", replicate)
    rows = shuffle.permutation(clients.roles["train"])
    z, labels = released(clients, rows, reporter, params["seed"])
    arrival = arrival_of(inputs["project"], replicate)[rows]
    return {"arrival": arrival, "z": z, "label": labels.astype(np.int8)}
