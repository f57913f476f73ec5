"""Stage privatize of two rounds: half of the labels, by randomized response."""

from __future__ import annotations

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.classes import Classes
from curvote.labels.task import ASKS
from curvote.protocols.labels.asked import first
from curvote.protocols.labels.stages.privatize import drawn
from curvote.protocols.labels.two.messages import MESSAGES
from curvote.protocols.stages.released import described


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is asked of the first half."""
    classes = Classes(inputs["ingest"].facts["classes"])
    return described(first(classes, params["epsilon"]))


def one(here: Here) -> Rows:
    """Return the table ``codes`` of the first half."""
    return drawn(here, MESSAGES[ASKS])
