"""Stage aggregate of volunteers alone: regression on their records."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.classifiers import classifier_columns
from curvote.server.volunteered import ridge_logistic


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the number of classes."""
    return dict(inputs["publish"].metadata)


def one(context: StageContext) -> Rows:
    """Return the table ``classifier``."""
    records = context.rows("publish", "public_records")
    line = ridge_logistic(records["z"], records["label"], context.metadata["n_classes"])
    return {"classifier": classifier_columns(line, len(records["label"]))}
