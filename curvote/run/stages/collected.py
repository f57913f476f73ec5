"""A stage of production whose messages came by envelope, from clients elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from curvote.errors import InternalError
from curvote.protocols.message import rows
from curvote.protocols.stage import Facts, Inputs, Params, Tables
from curvote.run.stages import released
from curvote.server.intake import Intake
from curvote.task import Task


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the task as it was published, whatever would be computed today."""
    task = Task.from_json(params["intake.task"])
    return released.described(task)


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the message's table from the accepted envelopes, in random order."""
    kind = released.message(params)
    with Intake(Path(params["intake.path"])) as intake:
        payloads = intake.payloads(params["intake.round"])
    if not payloads:
        raise InternalError("a round without messages was closed")
    task = Task.from_json(facts["task"])
    return {kind.table: [kind.gather(task, rows(payloads))]}
