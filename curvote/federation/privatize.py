"""Stage privatize of many servers: the training clients' reports, no comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import generator
from curvote.client.report import Reporter
from curvote.protocols.mrma.privatize import facts, released, reporter_of
from curvote.protocols.mrma.tables import REPORT_ARMS
from curvote.protocols.stage import Tables
from curvote.protocols.study import Clients, study_clients

__all__ = ["block", "facts"]


def block(
    instances: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``reports``: noised, no client id, shuffled."""
    reporter = reporter_of(facts["d"], params)
    clients = (study_clients(inputs["project"], params, i) for i in instances)
    return {"reports": [_reports(each, reporter, params["seed"]) for each in clients]}


def _reports(clients: Clients, reporter: Reporter, seed: int) -> Columns:
    z, labels = released(clients, clients.roles["train"], reporter, seed)
    rng = generator(seed, "privatize", "shuffle", clients.replicate)
    order = rng.permutation(len(z))
    arm = np.full(len(z), REPORT_ARMS.index("mrma"), dtype=np.int8)
    return {"arm": arm, "z": z[order], "label": labels[order].astype(np.int8)}
