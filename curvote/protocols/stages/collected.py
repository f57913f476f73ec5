"""A stage of production whose messages came by envelope, from clients elsewhere.

A round that stays open brings them in batches. The table holds the sums of all, so it
is the same however the messages were split.
"""

from __future__ import annotations

from pathlib import Path

from curvote.chain import tasks
from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.message import rows
from curvote.protocols.stages import released
from curvote.server.intake import Intake
from curvote.server.rounds import Payload
from curvote.server.watch import fall
from curvote.task import Asked

# A stage that states its task in another way has a ``task_of`` of its own.
task_of = released.task_of


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the task as it was published, whatever would be computed today.

    ``batches`` counts the messages as they were folded in, and ``fall`` says how
    probable the newest votes are if no classifier became worse (`watch.fall`); None
    where nothing compares.
    """
    task = tasks.read(params["intake.task"])
    batches = _batches(params)
    known = {"batches": [len(batch) for batch in batches]}
    return released.described(task) | known | {"fall": _fall(task, params, batches)}


def one(here: Here) -> Rows:
    """Return the message's table from the accepted envelopes, in random order."""
    task, kind = tasks.read(here.facts["task"]), released.message(here.params)
    return {kind.table: _table(task, here.params, _batches(here.params))}


def _batches(params: Params) -> list[list[Payload]]:
    """Return the messages that the step was named after, batch after batch.

    Those that were accepted or folded in since are left to the next run.
    """
    with Intake(Path(params["intake.path"])) as intake:
        return intake.payloads(params["intake.round"], params["accepted"])


def _table(task: Asked, params: Params, batches: list[list[Payload]]) -> Columns:
    every = [payload for batch in batches for payload in batch]
    return released.message(params).gather(task, rows(every))


def _fall(task: Asked, params: Params, batches: list[list[Payload]]) -> float | None:
    *earlier, newest = batches
    if not earlier:
        return None
    before, now = (_table(task, params, part) for part in (earlier, [newest]))
    return fall(before["n"], before["positive"], now["n"], now["positive"])
