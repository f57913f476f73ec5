"""Stage report without privacy: the mean test error of the learners."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.protocols import by_class
from curvote.protocols.classifiers import predict_places
from curvote.protocols.scores import TestClients, score_rows
from curvote.protocols.study import StudyClients, study_clients


def one(context: StageContext) -> Rows:
    """Return the table ``scores`` with the row ``clean``; of K > 2 classes more."""
    clients, judge = study_clients(context), context.params["project.judge"]
    if len(context.inputs["project"].metadata["classes"]) > 2:
        return _score_classes(context, clients)
    test = TestClients(*clients.features_and_signs(judge, "test"))
    fits = context.rows("fit", "fitted")
    error = test.error(test.decisions(fits["coef"], fits["intercept"])).mean()
    return score_rows({"clean": float(error)})


def _score_classes(context: StageContext, clients: StudyClients) -> Rows:
    """Return the scores of one learner of more than two classes, by z."""
    features, truth = clients.features_and_places("rescaled", "test")
    predictions = predict_places(features, context.rows("fit", "fitted"))
    classes = context.inputs["project"].metadata["classes"]
    rows = score_rows({"clean": float(np.mean(predictions != truth))})
    return by_class.add_class_scores(rows, "clean", truth, predictions, classes)
