"""Stage again: the other half's labels, among those that are likely of each record."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.classes import Classes
from curvote.protocols.labels.asked import second_round_task
from curvote.protocols.labels.messages import PRIOR
from curvote.protocols.labels.records import record_priors
from curvote.protocols.labels.stages.privatize import draw_codes, sender_names
from curvote.protocols.labels.two.messages import LIKELY, MESSAGES
from curvote.protocols.stages.released import task_metadata


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task of the second half."""
    classes = Classes(inputs["ingest"].metadata["classes"])
    return task_metadata(second_round_task(classes, params["epsilon"]))


def one(context: StageContext) -> Rows:
    """Return the table ``codes`` of the second half."""
    kind = MESSAGES[LIKELY]
    prior = record_priors(context, sender_names(context, kind))
    return draw_codes(context, kind, {PRIOR: prior})
