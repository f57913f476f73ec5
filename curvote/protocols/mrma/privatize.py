"""Stage privatize: the training clients' reports, and the voters' for comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import client_streams, generator
from curvote.client.report import Reporter
from curvote.protocols.mrma.tables import REPORT_ARMS
from curvote.protocols.stage import Tables
from curvote.protocols.study import Clients, study_clients


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the mechanism and its budgets, which are public."""
    project = inputs["project"].facts
    reporter = reporter_of(project["d"], params)
    return {
        "d": project["d"],
        "gram": project["encoding"]["gram"],
        "roughness": project["roughness"],
        "mechanism": params["privatize.mechanism"],
        "epsilon": params["epsilon"],
        "feature_epsilon": reporter.features.epsilon,
        "label_epsilon": reporter.label.epsilon,
    }


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``reports``: noised, no client id, shuffled."""
    reporter = reporter_of(facts["d"], params)
    each = (study_clients(inputs["project"], params, r) for r in replicates)
    return {"reports": [_reports(one, reporter, params["seed"]) for one in each]}


def reporter_of(d: int, params: Params) -> Reporter:
    """Return what makes a client's report of ``d`` numbers and a label."""
    return Reporter.build(
        d,
        params["epsilon"],
        params["privatize.mechanism"],
        params["privatize.label_share"],
        params["privatize.params"],
    )


def _reports(clients: Clients, reporter: Reporter, seed: int) -> Columns:
    rows = np.concatenate([clients.roles["train"], clients.roles["vote"]])
    z, labels = released(clients, rows, reporter, seed)
    arm = np.full(len(rows), REPORT_ARMS.index("pooled"), dtype=np.int8)
    arm[: len(clients.roles["train"])] = REPORT_ARMS.index("mrma")
    rng = generator(seed, "privatize", "shuffle", clients.replicate)
    order = rng.permutation(len(rows))
    return {"arm": arm[order], "z": z[order], "label": labels[order].astype(np.int8)}


def released(
    clients: Clients, rows: np.ndarray, reporter: Reporter, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the noised z (n, d) and labels (n,) of some clients, in their order."""
    z, labels = clients.z[rows], clients.labels[rows]
    noised_z, noised = np.empty_like(z), np.empty_like(labels)
    place = (seed, "privatize")
    streams = zip(
        client_streams(*place, "feature_noise", clients.replicate, len(rows)),
        client_streams(*place, "label_noise", clients.replicate, len(rows)),
        strict=True,
    )
    for (part, noise), (_, label_noise) in streams:
        noised_z[part], noised[part] = reporter.release(
            z[part], labels[part], noise, label_noise, study=True
        )
    return noised_z, noised
