"""Stage report of a study: the true error of a scorecard, and the majority's.

A stage's module says which method it is::

    one = by("stump")
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols.cells.scorecard import read
from curvote.protocols.majority.elect import wrong
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of
from curvote.server.cells import named


def by(method: str) -> Callable[[Here], Rows]:
    """Return the function ``one`` of the stage that scores ``method``."""

    def one(here: Here) -> Rows:
        clients = clients_of(here)
        n_classes = len(here.inputs["project"].facts["classes"])
        rows, z = here.rows("aggregate", "scorecard"), clients.z
        asked, scores = read(rows, z.shape[1], n_classes)
        test = clients.roles["test"]
        told = named(scores, asked, z[test])
        error = float(np.mean(told != clients.labels[test]))
        return score_rows({"majority": wrong(here, clients), method: error})

    return one
