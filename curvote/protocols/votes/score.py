"""Stage report of a study of `votes`: the true test error of what was elected."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.protocols.majority.elect import error
from curvote.protocols.mrma.score import own
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores``: ``votes``, the best direction, and the majority."""
    return {"scores": [_scores(replicate, inputs, params) for replicate in replicates]}


def _scores(replicate: int, inputs: Inputs, params: Params) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    test = Test(*clients.judged("rescaled", "test"))
    drawn = inputs["train"].columns("weak", replicate)
    ensemble = inputs["aggregate"].columns("ensemble", replicate)
    found = own(test, drawn, ensemble)
    errors = {
        "votes": found["mrma"],
        "best_single": found["best_single"],
        "majority": error(clients, params["epsilon"], params["seed"]),
    }
    none_passed = {"votes": ensemble["none_passed"][0]}
    return score_rows(errors, none_passed)["scores"]
