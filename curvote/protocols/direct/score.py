"""Report stage of a study: the test error of one classifier.

Serves every protocol that ends in the table ``classifier``.
"""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols import by_class
from curvote.protocols.classifiers import predict_places
from curvote.protocols.majority.elect import majority_error
from curvote.protocols.scores import score_rows
from curvote.protocols.study import study_clients


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the name of the method: the arm."""
    return {"method": params["direct.arm"]}


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: the arm and the majority; of K > 2 classes more."""
    clients, classifier = (
        study_clients(context),
        context.rows("aggregate", "classifier"),
    )
    features, truth = clients.features_and_places("rescaled", "test")
    predictions, method = (
        predict_places(features, classifier),
        context.metadata["method"],
    )
    errors = {
        "majority": majority_error(context, clients),
        method: float(np.mean(predictions != truth)),
    }
    classes = context.inputs["project"].metadata["classes"]
    return by_class.add_class_scores(
        score_rows(errors), method, truth, predictions, classes
    )
