"""Stage report without privacy: the mean test error of the learners."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores`` with the row ``clean`` of each replicate."""
    return {"scores": [_scores(r, inputs, params) for r in replicates]}


def _scores(replicate: int, inputs: Inputs, params: Params) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    test = Test(*clients.judged(params["project.judge"], "test"))
    weak = inputs["fit"].columns("weak", replicate)
    error = test.error(test.decisions(weak["coef"], weak["intercept"])).mean()
    return score_rows({"clean": float(error)})["scores"]
