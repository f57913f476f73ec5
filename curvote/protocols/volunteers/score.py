"""Stage report of volunteers alone: the true test error of their classifier."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols.classifiers import named
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of


def one(here: Here) -> Rows:
    """Return the table ``scores`` with the row ``volunteers``."""
    features, truth = clients_of(here).told("rescaled", "test")
    told = named(features, here.rows("aggregate", "classifier"))
    return score_rows({"volunteers": float(np.mean(told != truth))})
