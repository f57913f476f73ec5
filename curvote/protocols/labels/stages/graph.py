"""Stage graph: the neighbour graph of records, by public features alone."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.labels.learners.basis import fit_graph
from curvote.protocols.labels.packing import pack_model


def one(context: StageContext) -> Rows:
    """Return the table ``graph`` of all records; nothing where no learner takes it."""
    if not context.params["graph"]:
        return {"graph": {"model": np.empty(0, dtype=object)}}
    values = context.rows("features", "features")["values"]
    classes = context.inputs["features"].metadata["classes"]
    return {"graph": {"model": pack_model(fit_graph(values, len(classes)))}}
