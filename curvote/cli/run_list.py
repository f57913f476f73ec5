"""List of runs: each with its main number, and its difference from the previous one."""

from __future__ import annotations

from typing import Any

from curvote.base.errors import UserError, did_you_mean
from curvote.cli.tables import format_outcome
from curvote.flows.environment import is_alive
from curvote.flows.tracking.headline import study_headline
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.comparison import describe_change
from curvote.pipeline.run.results import (
    mean_scores,
    production_outcomes,
    scoring_stages,
)
from curvote.pipeline.run.run_object import missing_stages
from curvote.pipeline.run.status import run_state
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord, load_record, read_records


def list_runs(
    project: Project, pipeline: str | None, last: int
) -> list[dict[str, Any]]:
    """Return a row for each of the ``last`` runs, the latest first.

    UserError: nothing of this name has run.
    """
    names = records.pipeline_names(project)
    if pipeline is not None and pipeline not in names:
        hint = did_you_mean(pipeline, names)
        raise UserError(f"{pipeline}: no run of it.{hint}")
    ids = records.run_ids(project, pipeline)
    runs = read_records(project, lambda: ids[-last:])
    return [_run_row(project, record) for record in reversed(runs)]


def _run_row(project: Project, record: RunRecord) -> dict[str, Any]:
    before = records.previous_id(project, record.id)
    status = run_state(project, record, is_alive)
    return {
        "run": record.id,
        "pipeline": record.pipeline,
        "started": record.started,
        "finished": record.finished,
        "status": status,
        "overrides": record.overrides,
        "main": _main_number(project, record) if status == "completed" else "",
        "changed": describe_change(
            load_record(project, before) if before else None, record
        ),
    }


def _main_number(project: Project, record: RunRecord) -> str:
    """Return the main number of a run, as its page states it."""
    if missing_stages(project, record, scoring_stages(record)):
        return "gone (gc)"
    tell = _main_estimate if record.config.get("mode") == "production" else _main_score
    try:
        return tell(project, record)
    except UserError:  # altered, gone, or of an earlier version
        return "not readable"


def _main_score(project: Project, record: RunRecord) -> str:
    return study_headline(record, mean_scores(project, record)).title


def _main_estimate(project: Project, record: RunRecord) -> str:
    """Return the estimate from messages for a release's first cell."""
    for values in production_outcomes(project, record).values():
        words = format_outcome(values)
        name = next((n for n in words if f"{n}_se" in values), next(iter(words)))
        return f"{name} {words[name]}, by noised messages"
    return "- (messages tell nothing of it)"
