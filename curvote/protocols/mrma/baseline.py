"""Stage report, for the baselines that learn no weak classifier.

``majority`` is the constant classifier that noised labels elect, ``histogram`` that of
Berrett & Butucea (2019). Every client of training and voting reports to each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import generator
from curvote.errors import UserError
from curvote.protocols.majority.elect import error
from curvote.protocols.mrma.histogram import Histogram
from curvote.protocols.scores import score_rows
from curvote.protocols.stage import Tables
from curvote.protocols.study import Clients, study_clients


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return why there is no histogram, or null."""
    reason = None
    try:
        _histogram(inputs, params)
    except UserError as error:
        reason = f"Left out. {error}"
    return {"histogram": reason}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores``: the rows of each replicate."""
    histogram = None if facts["histogram"] else _histogram(inputs, params)
    return {"scores": [_scores(r, inputs, params, histogram) for r in replicates]}


def _histogram(inputs: Inputs, params: Params) -> Histogram:
    return Histogram(
        inputs["project"].facts["d"],
        params["histogram.bins"],
        params["epsilon"],
        bool(params["published.histogram"]),
    )


def _scores(
    replicate: int, inputs: Inputs, params: Params, histogram: Histogram | None
) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    errors = {"majority": error(clients, params["epsilon"], params["seed"])}
    if histogram:
        guess = _guess(clients, histogram, params["seed"])
        truth = clients.labels[clients.roles["test"]]
        errors["histogram"] = float(np.mean(truth != guess))
    return score_rows(errors)["scores"]


def _guess(clients: Clients, histogram: Histogram, seed: int) -> np.ndarray:
    """Return what the histogram says of each test client, judged on z."""
    rows = np.concatenate([clients.roles["train"], clients.roles["vote"]])
    rng = generator(seed, "report", "histogram", clients.replicate)
    points = clients.z[clients.roles["test"]]
    return histogram.classify(clients.z[rows], clients.labels[rows], points, rng)
