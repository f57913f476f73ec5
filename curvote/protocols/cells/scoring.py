"""Stage report of a study: the true error of a scorecard, and the majority's.

A stage's module says which method it is::

    one = by("stump")
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols import by_class
from curvote.protocols.cells.scorecard import read
from curvote.protocols.majority.elect import wrong
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of
from curvote.server.cells import named


def by(method: str) -> Callable[[Here], Rows]:
    """Return the function ``one`` of the stage that scores ``method``."""

    def one(here: Here) -> Rows:
        clients, classes = clients_of(here), here.inputs["project"].facts["classes"]
        z, truth = clients.told("rescaled", "test")
        asked, scores = read(
            here.rows("aggregate", "scorecard"), z.shape[1], len(classes)
        )
        said = named(scores, asked, z)
        error = float(np.mean(said != truth))
        rows = score_rows({"majority": wrong(here, clients), method: error})
        return by_class.told(rows, method, truth, said, classes)

    return one
