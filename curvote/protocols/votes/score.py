"""Stage report of a study of `votes`: the true test error of what was elected."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.majority.elect import wrong
from curvote.protocols.mrma.score import own
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.study import clients_of


def one(here: Here) -> Rows:
    """Return the table ``scores``: ``votes``, the best direction, and the majority."""
    clients, ensemble = clients_of(here), here.rows("aggregate", "ensemble")
    test = Test(*clients.judged("rescaled", "test"))
    found = own(test, here.rows("train", "weak"), ensemble)
    errors = {
        "votes": found["mrma"],
        "best_single": found["best_single"],
        "majority": wrong(here, clients),
    }
    return score_rows(errors, {"votes": ensemble["none_passed"][0]})
