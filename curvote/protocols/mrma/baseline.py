"""Stage report, for the baselines that learn no weak classifier.

``majority`` is the constant classifier that noised labels elect, ``histogram`` that of
Berrett & Butucea (2019). Every client of training and voting reports to each.
"""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.errors import UserError
from curvote.protocols.majority.elect import wrong
from curvote.protocols.mrma.histogram import Histogram
from curvote.protocols.roles import EVERYBODY
from curvote.protocols.scores import score_rows
from curvote.protocols.study import Clients, clients_of


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return why there is no histogram, or null."""
    reason = None
    try:
        _histogram(inputs, params)
    except UserError as error:
        reason = f"Left out. {error}"
    return {"histogram": reason}


def one(here: Here) -> Rows:
    """Return the table ``scores``: a row for each baseline that there is."""
    clients = clients_of(here)
    errors = {"majority": wrong(here, clients)}
    if not here.facts["histogram"]:
        guess = _guess(here, clients, _histogram(here.inputs, here.params))
        truth = clients.labels[clients.roles["test"]]
        errors["histogram"] = float(np.mean(truth != guess))
    return score_rows(errors)


def _histogram(inputs: Inputs, params: Params) -> Histogram:
    return Histogram(
        inputs["project"].facts["d"],
        params["histogram.bins"],
        params["epsilon"],
        bool(params["published.histogram"]),
        len(inputs["project"].facts["classes"]),
    )


def _guess(here: Here, clients: Clients, histogram: Histogram) -> np.ndarray:
    """Return what the histogram says of each test client, judged on z."""
    rows, rng = EVERYBODY.rows(clients.roles), here.generator("histogram")
    points = clients.z[clients.roles["test"]]
    return histogram.classify(clients.z[rows], clients.labels[rows], points, rng)
