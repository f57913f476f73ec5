"""Stage privatize of `mrma_privunit`: a noised direction from the training clients."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Facts, Inputs, Params
from curvote.client.direction import DirectionReporter
from curvote.protocols.direct.arms import from_params
from curvote.protocols.direct.privatize import published, reports
from curvote.protocols.roles import TRAINING
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients

ARM = "mean"


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is public: how vectors are made, and their noise."""
    return published(inputs, params, ARM)


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``directions``: noised, no client id, shuffled."""
    given = from_params(facts["d"], facts["params"])
    reporter = DirectionReporter.build(given, facts["epsilon"])
    place = params["seed"], "privatize"
    each = (study_clients(inputs["project"], params, r) for r in replicates)
    return {"directions": [reports(c, TRAINING, reporter, place) for c in each]}
