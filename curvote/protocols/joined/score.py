"""Stage report of the join: true test errors of both, of reports alone, of nobody."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols import by_class
from curvote.protocols.classifiers import predict_places
from curvote.protocols.direct.score import facts as of_direct
from curvote.protocols.majority.elect import majority_error
from curvote.protocols.scores import score_rows
from curvote.protocols.study import study_clients


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the name of the method of reports alone: the arm."""
    return of_direct(inputs, params)


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: ``joined``, the arm, and the majority."""
    clients = study_clients(context)
    features, truth = clients.features_and_places("rescaled", "test")
    report_predictions = predict_places(
        features, context.rows("aggregate", "reports_alone")
    )
    joined_predictions = predict_places(
        features, context.rows("aggregate", "classifier")
    )
    errors = {
        "majority": majority_error(context, clients),
        context.metadata["method"]: float(np.mean(report_predictions != truth)),
        "joined": float(np.mean(joined_predictions != truth)),
    }
    classes = context.inputs["project"].metadata["classes"]
    return by_class.add_class_scores(
        score_rows(errors), "joined", truth, joined_predictions, classes
    )
