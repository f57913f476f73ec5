"""Logging of runs in MLflow, and the view in which its pages open.

A list shows no metric unless somebody asks for its column. A saved view (MLflow keeps
it in a tag of the experiment) asks for those of the headline, and its charts draw them
against epsilon itself instead of the step.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.flows import lines
from curvote.flows.databases import MLFLOW
from curvote.flows.environment import file_locked, prepare_environment
from curvote.flows.machine import stop_cause
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
from curvote.flows.tracking.runs import CellLog, ExperimentLog, log_run_with_cells
from curvote.flows.tracking.store import (
    close_dead_runs,
    connect,
    find_experiment,
    find_or_make_experiment,
)
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord

if TYPE_CHECKING:
    from mlflow import MlflowClient


_VIEW_KEY = "headline"
_NAME_COLUMN = "attributes.`Run Name`"
# MLflow opens with its pages for language models unless it is told what this is.
_PAGE_KIND = "workflowType=machine_learning"
# A tag of an experiment holds 20,000 characters; a column stands there three times,
# quoted twice.
_MAX_CHARACTERS, _QUOTE_CHARACTERS = 5_500, 24


def set_view(client: MlflowClient, experiment: str, headline: Headline) -> None:
    """Set the view of an experiment from the headline of its newest run."""
    if not headline.points:
        return
    view = {
        "name": "Headline",
        "createdAt": 0,
        "state": json.dumps(_view_state(headline)),
    }
    tags = {
        f"mlflow.sharedViewState.{_VIEW_KEY}": json.dumps(view),
        "mlflow.note.content": headline.summary_text,
        "mlflow.experimentKind": "custom_model_development",
    }
    for name, value in tags.items():
        client.set_experiment_tag(experiment, name, value)


def _view_state(headline: Headline) -> dict[str, Any]:
    """Return MLflow's state of a view: columns, charts and their x-axis."""
    metrics = [f"metrics.`{name}`" for name in _fitting_names(headline.metric_names)]
    params = [f"params.`{name}`" for name in ("N", "d", "replicates")]
    columns = [*metrics, *params, "attributes.`Source`"]
    state = {
        "selectedColumns": columns,
        "columnOrder": [_NAME_COLUMN, *columns],
        "columnWidths": {_NAME_COLUMN: 330} | {name: 6 * len(name) for name in metrics},
        "chartsSearchFilter": headline.metric.name if headline.metric else "",
    }
    if headline.cell[headline.x] is not None:
        axis = {"xAxisKey": "metric", "selectedXAxisMetricKey": headline.x}
        state["globalLineChartConfig"] = axis | {"lineSmoothness": 0}
    return state


def _fitting_names(names: Sequence[str]) -> list[str]:
    """Return as many of the first names as the view has room for."""
    lengths = accumulate(len(name) + _QUOTE_CHARACTERS for name in names)
    return [n for n, end in zip(names, lengths, strict=True) if end <= _MAX_CHARACTERS]


def page_fragment(project: Project) -> str:
    """Return the address part that opens the last logged pipeline."""
    logged = records.last_logged_pipeline(project)
    with contextlib.suppress(Exception):  # whatever MLflow says: its pages will tell
        client = connect(project)
        experiment = find_experiment(client, project, logged) if logged else None
        if experiment:
            place = f"#/experiments/{experiment.experiment_id}/runs"
            return f"{place}?{_PAGE_KIND}&viewStateShareKey={_VIEW_KEY}"
    return f"#/experiments?{_PAGE_KIND}"


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
    from curvote.pipeline.run.results import final_model, mean_scores

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
    from curvote.pipeline.run.results import production_outcomes

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
    for record in records.unlogged_runs(project):
        newest = records.newest_ids(project, record.pipeline, "completed") == [
            record.id
        ]
        report = project.reports / record.pipeline if newest else None
        try:
            rows = rows_by_run.get(record.id)
            run_id = log_run(project, record, rows=rows, report=report)
            records.save_record(project, replace(record, mlflow_run=run_id))
        except UserError as error:  # what was stored for this one cannot be read
            _warn_not_logged(error)


def _warn_not_logged(error: Exception) -> None:
    reason = str(error).strip().rstrip(".").splitlines() or [type(error).__name__]
    lines.write_line(
        f"warning: MLflow could not log ({reason[0]}); the results stand and the next"
        " run tries again.",
        "warning",
    )
