"""The list of runs: each with its main number, and what differs from the one before."""

from __future__ import annotations

from typing import Any

from curvote.errors import UserError, did_you_mean
from curvote.flows.environment import is_alive
from curvote.flows.output.tables import outcome_words
from curvote.flows.tracking.headline import of_study
from curvote.run import records
from curvote.run.changes import from_before
from curvote.run.history import RunRecord, load, loaded
from curvote.run.loaded import lost
from curvote.run.project import Project
from curvote.run.results import outcomes
from curvote.run.status import state_of
from curvote.run.summary import scoring, summary


def listed(project: Project, pipeline: str | None, last: int) -> list[dict[str, Any]]:
    """Return a row for each of the ``last`` runs, the latest first.

    UserError: nothing of this name has run.
    """
    known = records.pipelines(project)
    if pipeline is not None and pipeline not in known:
        hint = did_you_mean(pipeline, known)
        raise UserError(f"{pipeline}: no run of it.{hint}")
    wanted = records.ids(project, pipeline)
    found = loaded(project, lambda: wanted[-last:])
    return [_row(project, record) for record in reversed(found)]


def _row(project: Project, record: RunRecord) -> dict[str, Any]:
    before = records.before(project, record.id)
    status = state_of(project, record, is_alive)
    return {
        "run": record.id,
        "pipeline": record.pipeline,
        "started": record.started,
        "finished": record.finished,
        "status": status,
        "overrides": record.overrides,
        "main": _main(project, record) if status == "completed" else "",
        "changed": from_before(load(project, before) if before else None, record),
    }


def _main(project: Project, record: RunRecord) -> str:
    """Return the number that a page of this run would state first."""
    if lost(project, record, scoring(record)):
        return "gone (gc)"
    tell = _released if record.config.get("mode") == "production" else _scored
    try:
        return tell(project, record)
    except UserError:  # altered, gone, or of an earlier version
        return "not readable"


def _scored(project: Project, record: RunRecord) -> str:
    return of_study(record, summary(project, record)).title


def _released(project: Project, record: RunRecord) -> str:
    """Return what messages tell of a release's first cell; its error nobody knows."""
    for known in outcomes(project, record).values():
        words = outcome_words(known)
        name = next((n for n in words if f"{n}_se" in known), next(iter(words)))
        return f"{name} {words[name]}, by noised messages"
    return "- (messages tell nothing of it)"
