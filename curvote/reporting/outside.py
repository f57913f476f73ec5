"""What who sees only a run's shuffled tables learns at most about one client."""

from __future__ import annotations

from curvote.chain import tasks
from curvote.protocols.message import message_of
from curvote.protocols.outside import Outside, crowd
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.release import production
from curvote.run.store.artifacts import Artifact, sound


def outside(project: Project, record: RunRecord) -> list[tuple[str, Outside]]:
    """Return the guarantee of each message that left clients in a production run.

    Only of those that hide among others.
    """
    here = {e.release: e.n_clients for e in production.entries(project)}
    found = []
    for step in record.steps:
        made = sound(project, step["stage"], step["key"])
        if "task" not in made.facts:
            continue
        task = tasks.read(made.facts["task"])
        message = message_of(task)
        if message.whole or message.stage != step["stage"]:
            continue  # a table hides among no others; the rest tells what was asked
        # A round that stays open shows each batch by itself: the smallest counts.
        batches = made.facts.get("batches", [here.get(step["key"], 0)])
        n = min(batches)
        if task.candidates:
            n = _fewest(made, message.table) if len(batches) == 1 else 0
        told = Outside.of(task.spends(), crowd(message, n))
        if told:
            found.append((message.name, told))
    return found


def _fewest(made: Artifact, table: str) -> int:
    """Return the fewest votes on one candidate that has any.

    Whoever answers decides how many there are, so they need not be even.
    """
    votes = made.columns(table, (0,))["n"]
    return int(votes[votes > 0].min(initial=votes.max()))
