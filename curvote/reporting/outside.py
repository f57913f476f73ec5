"""Loader of a report's data, and guarantees against outsiders who see tables."""

from __future__ import annotations

from curvote.chain import tasks
from curvote.protocols.message import message_of
from curvote.protocols.outside import ShuffledGuarantee, crowd_size
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.release import production
from curvote.run.store.artifacts import Artifact, checked_artifact


def outsider_guarantees(
    project: Project, record: RunRecord
) -> list[tuple[str, ShuffledGuarantee]]:
    """Return the guarantee of each released message against outsiders.

    Only of those that hide among others.
    """
    client_counts = {e.release: e.n_clients for e in production.ledger_entries(project)}
    guarantees = []
    for step in record.steps:
        stored = checked_artifact(project, step["stage"], step["key"])
        if "task" not in stored.metadata:
            continue
        task = tasks.read_task(stored.metadata["task"])
        message = message_of(task)
        if message.per_table or message.stage != step["stage"]:
            continue  # a table hides among no others; the rest tells what was asked
        # A round that stays open shows each batch by itself: the smallest counts.
        batches = stored.metadata.get("batches", [client_counts.get(step["key"], 0)])
        n = min(batches)
        if task.candidates:
            n = _min_votes(stored, message.table) if len(batches) == 1 else 0
        guarantee = ShuffledGuarantee.from_local(task.cost(), crowd_size(message, n))
        if guarantee:
            guarantees.append((message.name, guarantee))
    return guarantees


def _min_votes(stored: Artifact, table: str) -> int:
    """Return the least number of votes that any voted candidate has.

    Whoever answers decides how many there are, so they need not be even.
    """
    votes = stored.columns(table, (0,))["n"]
    return int(votes[votes > 0].min(initial=votes.max()))
