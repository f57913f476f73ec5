"""Logging of runs in MLflow: a parent for each run, a child for each cell.

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
from curvote.flows.environment import file_locked, prepare_environment
from curvote.flows.examining.databases import MLFLOW
from curvote.flows.output import lines
from curvote.flows.stopped import stop_cause
from curvote.flows.tracking.cell import CellLog
from curvote.flows.tracking.cells import (
    Row,
    load_scores,
    metrics_by_cell,
    parts_by_cell,
)
from curvote.flows.tracking.headline import (
    Headline,
    main_method_scores,
    outcomes_headline,
    study_headline,
)
from curvote.flows.tracking.parent import log_run_with_cells
from curvote.flows.tracking.run import ExperimentLog
from curvote.flows.tracking.store import (
    close_dead_runs,
    connect,
    find_or_make_experiment,
)
from curvote.flows.tracking.view import set_view
from curvote.run import history, records
from curvote.run.history import RunRecord
from curvote.run.project import Project

ModelFactory = Callable[[Cell], Any]


def log_missing_runs(
    project: Project, rows_by_run: Mapping[str, Sequence[Row]] | None = None
) -> None:
    """Log every completed run that MLflow lacks; a failure is a warning.

    The run that has just ended is one of them; its rows may be ``rows_by_run`` by its
    id. Where MLflow is not installed, they wait until it is. Where others are missing,
    runs that a killed process left open are marked as killed.
    """
    missing = records.unlogged_ids(project) if find_spec("mlflow") else []
    if not missing:
        return
    try:
        prepare_environment(project.root)
        with file_locked(project.state / "mlflow.lock"):
            if len(missing) > 1:
                close_dead_runs(connect(project))
            _log_each(project, rows_by_run or {})
    except Exception as error:  # noqa: BLE001  results stand, whatever MLflow does
        _warn_not_logged(stop_cause(project, error, MLFLOW) or error)


def make_database(project: Project) -> None:
    """Create or upgrade MLflow's database, one process at a time."""
    prepare_environment(project.root)
    with file_locked(project.state / "mlflow.lock"):
        connect(project).search_experiments(max_results=1)


def preload(project: Project) -> None:
    """Import MLflow and make its database early; failures are ignored."""
    with contextlib.suppress(Exception):
        import mlflow.sklearn

        if "http" not in urlsplit(os.environ["MLFLOW_TRACKING_URI"]).scheme:
            import mlflow.store.tracking.sqlalchemy_store  # noqa: F401  the same
        path = MLFLOW.path(project)
        if path and not path.exists():
            make_database(project)


def log_run(
    project: Project,
    record: RunRecord,
    *,
    rows: Iterable[Row] | None = None,
    model_of: ModelFactory | None = None,
    report: Path | None = None,
) -> str:
    """Log one run and return the id of its parent run.

    Metrics are logged anew each time; a model or figures that were logged before from
    equal artifacts are linked. A run that is logged already is left as it is.

    Args:
        project: the project, whose tracking store `environment.prepare_environment`
            chose.
        record: what was run, finished.
        rows: as ``scores --json``; by default those of the record.
        model_of: the final model of a cell, or None; by default that of the record.
        report: the folder with report.html and figures/; absent parts are passed over.

    Raises:
        Exception: whatever MLflow, the store or the file system raises. What was
            logged by then is deleted.
    """
    from curvote.run.results import final_model
    from curvote.run.summary import mean_scores

    client = connect(project)
    log = ExperimentLog(
        client,
        find_or_make_experiment(client, project, record.pipeline),
        project,
        record,
    )
    logged = log.find("curvote.run", record.id)
    if logged:
        return str(logged.info.run_id)
    score_rows = mean_scores(project, record) if rows is None else [*rows]
    make = model_of or partial(final_model, project, record)
    cells, headline = _collect_logs(project, record, score_rows, make)
    parent = log_run_with_cells(log, cells, headline, report)
    set_view(client, log.experiment, headline)
    return parent


def _collect_logs(
    project: Project, record: RunRecord, rows: Sequence[Row], make: ModelFactory
) -> tuple[list[CellLog], Headline]:
    """Return what is logged of each cell, and the headline."""
    from curvote.run.results import production_outcomes

    scores = load_scores(record, rows)
    metrics = (
        metrics_by_cell(scores) if scores else production_outcomes(project, record)
    )
    parts = parts_by_cell(record, metrics)
    headline = (
        study_headline(record, rows) if scores else outcomes_headline(metrics, parts)
    )
    methods = {score.cell: score.series_name for score in main_method_scores(scores)}
    cell_logs = [
        CellLog(cell, parts[cell], cell_metrics, methods.get(cell, ""), make)
        for cell, cell_metrics in metrics.items()
    ]
    return cell_logs, headline


def _log_each(project: Project, rows_by_run: Mapping[str, Sequence[Row]]) -> None:
    """Log each run that is missing by the records, read under the lock."""
    for record in history.unlogged_runs(project):
        newest = records.newest_ids(project, record.pipeline, "completed") == [
            record.id
        ]
        report = project.reports / record.pipeline if newest else None
        try:
            rows = rows_by_run.get(record.id)
            run_id = log_run(project, record, rows=rows, report=report)
            history.save_record(project, replace(record, mlflow_run=run_id))
        except UserError as error:  # what was stored for this one cannot be read
            _warn_not_logged(error)


def _warn_not_logged(error: Exception) -> None:
    reason = str(error).strip().rstrip(".").splitlines() or [type(error).__name__]
    lines.write_line(
        f"warning: MLflow could not log ({reason[0]}); the results stand and the next"
        " run tries again.",
        "warning",
    )
