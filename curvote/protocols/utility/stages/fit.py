"""Stages of utility: fit, surface, agree and report."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.labels.packing import pack_model
from curvote.protocols.roles import roles_of_table
from curvote.protocols.utility.columns import record_columns
from curvote.protocols.utility.fitting import fit_classifier


def one(context: StageContext) -> Rows:
    """Return the table ``estimator``: one model, fitted on the training clients."""
    clients = context.rows("ingest", "clients")
    columns = record_columns(
        context.inputs["ingest"].metadata, context.params["record"]
    )
    train = roles_of_table(clients, context.params, context.number)["train"]
    seed = int(context.generator("fit").integers(1 << 31))
    X, y = columns.of(clients["curve"][train]), clients["label"][train]
    return {
        "estimator": {
            "model": pack_model(fit_classifier(context.params["learner"], X, y, seed))
        }
    }
