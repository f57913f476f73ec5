"""Stage graph: who is near whom, by public features alone."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.labels.learners.basis import graph
from curvote.protocols.labels.packing import packed


def one(here: Here) -> Rows:
    """Return the table ``graph`` of all records; nothing where no learner takes it."""
    if not here.params["graph"]:
        return {"graph": {"model": np.empty(0, dtype=object)}}
    values = here.rows("features", "features")["values"]
    classes = here.inputs["features"].facts["classes"]
    return {"graph": {"model": packed(graph(values, len(classes)))}}
