"""Stages of two rounds: codes of one half, priors, codes of the other, one model."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.classes import Classes
from curvote.labels.task import ASKS
from curvote.protocols.labels.asked import first_round_task
from curvote.protocols.labels.stages.privatize import draw_codes
from curvote.protocols.labels.two.messages import MESSAGES
from curvote.protocols.stages.released import task_metadata


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task of the first half."""
    classes = Classes(inputs["ingest"].metadata["classes"])
    return task_metadata(first_round_task(classes, params["epsilon"]))


def one(context: StageContext) -> Rows:
    """Return the table ``codes`` of the first half."""
    return draw_codes(context, MESSAGES[ASKS])
