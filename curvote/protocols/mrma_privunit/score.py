"""Stage report of a study of `mrma_privunit`: MRMA's own methods, without pooling."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.majority.elect import majority_error
from curvote.protocols.mrma.score import ensemble_errors, mean_errors, none_passed_flags
from curvote.protocols.scores import TestClients, score_rows
from curvote.protocols.study import study_clients


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: one row for each method."""
    clients = study_clients(context)
    test = TestClients(
        *clients.features_and_signs(context.params["project.judge"], "test")
    )
    tables = context.rows("train", "weak"), context.rows("aggregate", "ensemble")
    errors = mean_errors(test, *tables) | ensemble_errors(test, *tables)
    errors["majority"] = majority_error(context, clients)
    return score_rows(errors, none_passed_flags(tables[1]))
