"""Collection stage of production: messages that came by envelope.

A round that stays open brings them in batches. The table holds the sums of all, so it
is the same however the messages were split.
"""

from __future__ import annotations

from pathlib import Path

from curvote.chain import tasks
from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.message import payload_columns
from curvote.protocols.stages import released
from curvote.server.intake import Intake
from curvote.server.rounds import Payload
from curvote.server.watch import drift_p_value
from curvote.task import AnyTask

# A stage that states its task in another way has a ``task_of`` of its own.
task_of = released.task_of


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the task as published, the batches, and the drift of votes.

    ``batches`` counts the messages as they were folded in, and ``drift_p_value`` says
    how probable the newest votes are if no classifier became worse
    (`watch.drift_p_value`); None where nothing compares.
    """
    task = tasks.read_task(params["intake.task"])
    batches = _accepted_batches(params)
    counts = {"batches": [len(batch) for batch in batches]}
    return (
        released.task_metadata(task)
        | counts
        | {"fall": _drift_level(task, params, batches)}
    )


def one(context: StageContext) -> Rows:
    """Return the message's table from the accepted envelopes, shuffled."""
    task, kind = (
        tasks.read_task(context.metadata["task"]),
        released.stage_message(context.params),
    )
    return {
        kind.table: _message_table(
            task, context.params, _accepted_batches(context.params)
        )
    }


def _accepted_batches(params: Params) -> list[list[Payload]]:
    """Return the messages that the step was named after, by batch.

    Those that were accepted or folded in since are left to the next run.
    """
    with Intake(Path(params["intake.path"])) as intake:
        return intake.payloads(params["intake.round"], params["accepted"])


def _message_table(
    task: AnyTask, params: Params, batches: list[list[Payload]]
) -> Columns:
    every = [payload for batch in batches for payload in batch]
    return released.stage_message(params).collect(task, payload_columns(every))


def _drift_level(
    task: AnyTask, params: Params, batches: list[list[Payload]]
) -> float | None:
    *earlier, newest = batches
    if not earlier:
        return None
    before, after = (_message_table(task, params, part) for part in (earlier, [newest]))
    return drift_p_value(before["n"], before["positive"], after["n"], after["positive"])
