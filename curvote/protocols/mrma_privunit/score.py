"""Stage report of a study of `mrma_privunit`: MRMA's own methods, without pooling."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.majority.elect import wrong
from curvote.protocols.mrma.score import none_passed, own, single
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.study import clients_of


def one(here: Here) -> Rows:
    """Return the table ``scores``: one row for each method."""
    clients = clients_of(here)
    test = Test(*clients.judged(here.params["project.judge"], "test"))
    made = here.rows("train", "weak"), here.rows("aggregate", "ensemble")
    errors = single(test, *made) | own(test, *made)
    errors["majority"] = wrong(here, clients)
    return score_rows(errors, none_passed(made[1]))
