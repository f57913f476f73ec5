"""What MLflow shows: one run for each execution, a child for each of its cells.

Everything is logged once, after the results stand; what could not be logged is logged
by the next run. MLflow is imported inside functions only.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from curvote.chain.axis import Cell
from curvote.errors import UserError
from curvote.flows.environment import locked, prepare
from curvote.flows.examining.databases import MLFLOW
from curvote.flows.output import lines
from curvote.flows.stopped import cause
from curvote.flows.tracking.cell import Told
from curvote.flows.tracking.cells import Row, by_cell, parts_by_cell, scores_of
from curvote.flows.tracking.headline import (
    Headline,
    main_scores,
    of_outcomes,
    of_study,
)
from curvote.flows.tracking.parent import log_all
from curvote.flows.tracking.run import Log
from curvote.flows.tracking.store import connect, experiment_id, sweep
from curvote.flows.tracking.view import describe
from curvote.run import history, records
from curvote.run.history import RunRecord
from curvote.run.project import Project

ModelOf = Callable[[Cell], Any]


def repair(project: Project, known: Mapping[str, Sequence[Row]] | None = None) -> None:
    """Log every completed run that MLflow does not have; a failure is only a warning.

    The run that has just ended is one of them; its rows may be ``known`` by its id.
    Where MLflow is not installed, they wait until it is.
    Where others are missing, runs that a killed process left open are marked as killed.
    """
    missing = records.unlogged(project) if find_spec("mlflow") else []
    if not missing:
        return
    try:
        prepare(project.root)
        with locked(project.state / "mlflow.lock"):
            if len(missing) > 1:
                sweep(connect(project))
            _log_missing(project, known or {})
    except Exception as error:  # noqa: BLE001  results stand, whatever MLflow does
        _warn(cause(project, error, MLFLOW) or error)


def initialise(project: Project) -> None:
    """Make or upgrade MLflow's database, one process at a time; seconds when new."""
    prepare(project.root)
    with locked(project.state / "mlflow.lock"):
        connect(project).search_experiments(max_results=1)


def preload(project: Project) -> None:
    """Import MLflow and make its database early; a failure is left to `repair`."""
    with contextlib.suppress(Exception):
        import mlflow.sklearn

        if "http" not in urlsplit(os.environ["MLFLOW_TRACKING_URI"]).scheme:
            import mlflow.store.tracking.sqlalchemy_store  # noqa: F401  the same
        path = MLFLOW.path(project)
        if path and not path.exists():
            initialise(project)


def log_run(
    project: Project,
    record: RunRecord,
    *,
    rows: Iterable[Row] | None = None,
    model_of: ModelOf | None = None,
    report: Path | None = None,
) -> str:
    """Log one execution and return the id of its parent run.

    Metrics are logged anew each time; a model or figures that were logged before from
    equal artifacts are linked. A run that is logged already is left as it is.

    Args:
        project: the project, whose tracking store `environment.prepare` chose.
        record: what was run, finished.
        rows: as ``scores --json``; by default those of the record.
        model_of: the final model of a cell, or None; by default that of the record.
        report: the folder with report.html and figures/; absent parts are passed over.

    Raises:
        Exception: whatever MLflow, the store or the file system raises. What was
            logged by then is deleted.
    """
    from curvote.run.results import final_model
    from curvote.run.summary import summary

    client = connect(project)
    log = Log(client, experiment_id(client, project, record.pipeline), project, record)
    known = log.find("curvote.run", record.id)
    if known:
        return str(known.info.run_id)
    told = summary(project, record) if rows is None else [*rows]
    make = model_of or partial(final_model, project, record)
    cells, headline = _told(project, record, told, make)
    parent = log_all(log, cells, headline, report)
    describe(client, log.experiment, headline)
    return parent


def _told(
    project: Project, record: RunRecord, rows: Sequence[Row], make: ModelOf
) -> tuple[list[Told], Headline]:
    """Return what is told of each cell, and of all: scores, or a release's facts."""
    from curvote.run.results import outcomes

    scores = scores_of(record, rows)
    metrics = by_cell(scores) if scores else outcomes(project, record)
    parts = parts_by_cell(record, metrics)
    headline = of_study(record, rows) if scores else of_outcomes(metrics, parts)
    methods = {score.cell: score.called for score in main_scores(scores)}
    told = [
        Told(cell, parts[cell], own, methods.get(cell, ""), make)
        for cell, own in metrics.items()
    ]
    return told, headline


def _log_missing(project: Project, known: Mapping[str, Sequence[Row]]) -> None:
    """Log what the records, read again under the lock, say is missing."""
    for record in history.unlogged(project):
        newest = records.newest(project, record.pipeline, "completed") == [record.id]
        report = project.reports / record.pipeline if newest else None
        try:
            rows = known.get(record.id)
            run_id = log_run(project, record, rows=rows, report=report)
            history.save(project, replace(record, mlflow_run=run_id))
        except UserError as error:  # what was stored for this one cannot be read
            _warn(error)


def _warn(error: Exception) -> None:
    reason = str(error).strip().rstrip(".").splitlines() or [type(error).__name__]
    lines.say(
        f"warning: MLflow could not log ({reason[0]}); the results stand and the next"
        " run tries again.",
        "warning",
    )
