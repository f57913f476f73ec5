"""Stage report of a study of `votes`: the true test error of what was elected."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Rows, StageContext
from curvote.protocols import by_class
from curvote.protocols.combining import combined_predictions, signed_weights
from curvote.protocols.majority.elect import majority_error
from curvote.protocols.mrma.score import best_single_weights
from curvote.protocols.mrma.tables import lines_of_variant
from curvote.protocols.questions import (
    Array,
    halving_code,
    interleave_questions,
    split_questions,
)
from curvote.protocols.scores import score_rows
from curvote.protocols.study import study_clients


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: ``votes``, the best direction, and the majority."""
    clients, ensemble = study_clients(context), context.rows("aggregate", "ensemble")
    features, truth = clients.features_and_places("rescaled", "test")
    classes = context.inputs["project"].metadata["classes"]
    code, lines = (
        halving_code(len(classes)),
        lines_of_variant(context.rows("train", "weak"), "weak"),
    )
    predictions = {
        method: combined_predictions(code, features, lines, method_weights)
        for method, method_weights in direction_weights(ensemble, len(code)).items()
    }
    errors = {
        method: float(np.mean(method_weights != truth))
        for method, method_weights in predictions.items()
    }
    errors["majority"] = majority_error(context, clients)
    rows = score_rows(errors, {"votes": ensemble["none_passed"][0]})
    return by_class.add_class_scores(
        rows, "votes", truth, predictions["votes"], classes
    )


def direction_weights(ensemble: Columns, n_splits: int) -> dict[str, Array]:
    """Return the weight of each direction by method."""
    signs = np.where(ensemble["reversed"], -1.0, 1.0)
    best_weights = interleave_questions(
        [best_single_weights(rows) for rows in split_questions(ensemble, n_splits)]
    )
    return {"votes": signed_weights(ensemble), "best_single": signs * best_weights}
