"""Report stage of cell systems: the error of a scorecard.

A stage's module says which method it is::

    one = by("stump")
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.protocols import by_class
from curvote.protocols.cells.scorecard import read_scorecard
from curvote.protocols.majority.elect import majority_error
from curvote.protocols.scores import score_rows
from curvote.protocols.study import study_clients
from curvote.server.cells import predict_cells


def scorecard_score_stage(method: str) -> Callable[[StageContext], Rows]:
    """Return the table function of the stage that scores ``method``."""

    def score_cells(context: StageContext) -> Rows:
        clients, classes = (
            study_clients(context),
            context.inputs["project"].metadata["classes"],
        )
        z, truth = clients.features_and_places("rescaled", "test")
        partitions, scores = read_scorecard(
            context.rows("aggregate", "scorecard"), z.shape[1], len(classes)
        )
        predictions = predict_cells(scores, partitions, z)
        error = float(np.mean(predictions != truth))
        rows = score_rows({"majority": majority_error(context, clients), method: error})
        return by_class.add_class_scores(rows, method, truth, predictions, classes)

    return score_cells
