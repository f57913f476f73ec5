"""Stage report of a study of `votes`: the true test error of what was elected."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Here, Rows
from curvote.protocols import by_class
from curvote.protocols.combining import said, turned
from curvote.protocols.majority.elect import wrong
from curvote.protocols.mrma.score import best
from curvote.protocols.mrma.tables import variant
from curvote.protocols.questions import Array, apart, in_turn, splits
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of


def one(here: Here) -> Rows:
    """Return the table ``scores``: ``votes``, the best direction, and the majority."""
    clients, ensemble = clients_of(here), here.rows("aggregate", "ensemble")
    features, truth = clients.told("rescaled", "test")
    classes = here.inputs["project"].facts["classes"]
    code, lines = splits(len(classes)), variant(here.rows("train", "weak"), "weak")
    told = {
        method: said(code, features, lines, own)
        for method, own in weights(ensemble, len(code)).items()
    }
    errors = {method: float(np.mean(own != truth)) for method, own in told.items()}
    errors["majority"] = wrong(here, clients)
    rows = score_rows(errors, {"votes": ensemble["none_passed"][0]})
    return by_class.told(rows, "votes", truth, told["votes"], classes)


def weights(ensemble: Columns, n_splits: int) -> dict[str, Array]:
    """Return the weight of each direction, by method; of each split the best stands."""
    turn = np.where(ensemble["reversed"], -1.0, 1.0)
    single = in_turn([best(rows) for rows in apart(ensemble, n_splits)])
    return {"votes": turned(ensemble), "best_single": turn * single}
