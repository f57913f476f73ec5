"""Stage report of a study of `mrma_privunit`: MRMA's own methods, without pooling."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.protocols.majority.elect import error
from curvote.protocols.mrma.score import own, single
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores``: one row for each method and replicate."""
    return {"scores": [_scores(replicate, inputs, params) for replicate in replicates]}


def _scores(replicate: int, inputs: Inputs, params: Params) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    test = Test(*clients.judged(params["project.judge"], "test"))
    weak = inputs["train"].columns("weak", replicate)
    ensemble = inputs["aggregate"].columns("ensemble", replicate)
    errors = single(test, weak, ensemble) | own(test, weak, ensemble)
    errors["majority"] = error(clients, params["epsilon"], params["seed"])
    none_passed = {
        "mrma": ensemble["none_passed"][0],
        "ma": ensemble["none_passed_ma"][0],
    }
    return score_rows(errors, none_passed)["scores"]
