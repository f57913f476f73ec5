"""Stage report of volunteers alone: the true test error of their classifier."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.protocols import by_class
from curvote.protocols.classifiers import predict_places
from curvote.protocols.scores import score_rows
from curvote.protocols.study import study_clients


def one(context: StageContext) -> Rows:
    """Return the table ``scores`` of ``volunteers``, by class if many."""
    features, truth = study_clients(context).features_and_places("rescaled", "test")
    predictions = predict_places(features, context.rows("aggregate", "classifier"))
    classes = context.inputs["project"].metadata["classes"]
    rows = score_rows({"volunteers": float(np.mean(predictions != truth))})
    return by_class.add_class_scores(rows, "volunteers", truth, predictions, classes)
