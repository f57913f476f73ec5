"""Stage privatize of many servers: the training clients' reports, no comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.client.report import Reporter
from curvote.entropy import client_streams, generator
from curvote.protocols.mrma.arms import REPORT_ARMS
from curvote.protocols.mrma.privatize import facts
from curvote.protocols.mrma.study import Clients, study_clients
from curvote.protocols.stage import Columns, Facts, Inputs, Params, Tables

__all__ = ["block", "facts"]

_REPORT = ("privatize.mechanism", "privatize.label_share", "privatize.params")


def block(
    instances: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``reports``: noised, no client id, shuffled."""
    options = (params[name] for name in _REPORT)
    reporter = Reporter.build(facts["d"], params["epsilon"], *options)
    clients = (study_clients(inputs["project"], params, i) for i in instances)
    return {"reports": [_reports(each, reporter, params["seed"]) for each in clients]}


def _reports(clients: Clients, reporter: Reporter, seed: int) -> Columns:
    rows = clients.roles["train"]
    noised_z, noised = np.empty_like(clients.z[rows]), np.empty(len(rows))
    noises = (
        client_streams(seed, "privatize", purpose, clients.replicate, len(rows))
        for purpose in ("feature_noise", "label_noise")
    )
    for (part, noise), (_, label_noise) in zip(*noises, strict=True):
        z, labels = clients.z[rows[part]], clients.labels[rows[part]]
        noised_z[part], noised[part] = reporter.release(
            z, labels, noise, label_noise, study=True
        )
    order = generator(seed, "privatize", "shuffle", clients.replicate)
    shuffled = order.permutation(len(rows))
    return {
        "arm": np.full(len(rows), REPORT_ARMS.index("mrma"), dtype=np.int8),
        "z": noised_z[shuffled],
        "label": noised[shuffled].astype(np.int8),
    }
