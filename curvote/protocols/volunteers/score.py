"""Stage report of volunteers alone: the true test error of their classifier."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols import by_class
from curvote.protocols.classifiers import named
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of


def one(here: Here) -> Rows:
    """Return the table ``scores``: ``volunteers``; of K > 2 classes more."""
    features, truth = clients_of(here).told("rescaled", "test")
    said = named(features, here.rows("aggregate", "classifier"))
    classes = here.inputs["project"].facts["classes"]
    rows = score_rows({"volunteers": float(np.mean(said != truth))})
    return by_class.told(rows, "volunteers", truth, said, classes)
