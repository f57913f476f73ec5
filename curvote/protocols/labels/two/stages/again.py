"""Stage again: the other half's labels, among those that are likely of each record."""

from __future__ import annotations

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.classes import Classes
from curvote.protocols.labels.asked import second
from curvote.protocols.labels.messages import PRIOR
from curvote.protocols.labels.records import priors_of
from curvote.protocols.labels.stages.privatize import drawn, senders
from curvote.protocols.labels.two.messages import LIKELY, MESSAGES
from curvote.protocols.stages.released import described


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is asked of the second half."""
    classes = Classes(inputs["ingest"].facts["classes"])
    return described(second(classes, params["epsilon"]))


def one(here: Here) -> Rows:
    """Return the table ``codes`` of the second half."""
    kind = MESSAGES[LIKELY]
    prior = priors_of(here, senders(here, kind))
    return drawn(here, kind, {PRIOR: prior})
