"""Report stage of the baselines that learn no weak classifier.

``majority`` is the constant classifier that noised labels elect, ``histogram`` that of
Berrett & Butucea (2019). Every client of training and voting reports to each.
"""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.errors import UserError
from curvote.protocols.majority.elect import majority_error
from curvote.protocols.mrma.histogram import Histogram
from curvote.protocols.roles import EVERYBODY
from curvote.protocols.scores import score_rows
from curvote.protocols.study import StudyClients, study_clients


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return why there is no histogram, or null."""
    reason = None
    try:
        _make_histogram(inputs, params)
    except UserError as error:
        reason = f"Left out. {error}"
    return {"histogram": reason}


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: a row for each baseline that there is."""
    clients = study_clients(context)
    errors = {"majority": majority_error(context, clients)}
    if not context.metadata["histogram"]:
        predictions = _histogram_predictions(
            context, clients, _make_histogram(context.inputs, context.params)
        )
        truth = clients.labels[clients.roles["test"]]
        errors["histogram"] = float(np.mean(truth != predictions))
    return score_rows(errors)


def _make_histogram(inputs: Inputs, params: Params) -> Histogram:
    return Histogram(
        inputs["project"].metadata["d"],
        params["histogram.bins"],
        params["epsilon"],
        bool(params["published.histogram"]),
        len(inputs["project"].metadata["classes"]),
    )


def _histogram_predictions(
    context: StageContext, clients: StudyClients, histogram: Histogram
) -> np.ndarray:
    """Return the histogram's predictions for the test clients, by z."""
    rows, rng = EVERYBODY.rows(clients.roles), context.generator("histogram")
    points = clients.z[clients.roles["test"]]
    return histogram.classify(clients.z[rows], clients.labels[rows], points, rng)
