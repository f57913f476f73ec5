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
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.flows import lines
from curvote.flows.environment import file_locked, prepare_environment
from curvote.flows.machine import MLFLOW, stop_cause
from curvote.flows.tracking import cells as words
from curvote.flows.tracking import store
from curvote.flows.tracking.cells import Headline, Row
from curvote.flows.tracking.runs import CellLog, ExperimentLog, log_run_with_cells
from curvote.flows.tracking.store import connect
from curvote.flows.tracking.usage import start_sampling
from curvote.pipeline.config import yaml_document
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord

_VIEW_KEY = "headline"
_NAME_COLUMN = "attributes.`Run Name`"
# MLflow opens with its pages for language models unless it is told what this is.
_PAGE_KIND = "workflowType=machine_learning"
# A tag of an experiment holds 20,000 characters; a column stands there three times,
# quoted twice.
_MAX_CHARACTERS, _QUOTE_CHARACTERS = 5_500, 24


def _view_state(headline: Headline) -> dict[str, Any]:
    """Return MLflow's state of a view: columns, charts and their x-axis."""
    # As many of the first names as the view has room for.
    names = headline.metric_names
    lengths = accumulate(len(name) + _QUOTE_CHARACTERS for name in names)
    pairs = zip(names, lengths, strict=True)
    metrics = [f"metrics.`{name}`" for name, end in pairs if end <= _MAX_CHARACTERS]
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


def page_fragment(project: Project) -> str:
    """Return the address part that opens the last logged pipeline."""
    logged = records.last_logged_pipeline(project)
    with contextlib.suppress(Exception):  # whatever MLflow says: its pages will tell
        client = connect(project)
        experiment = store.find_experiment(client, project, logged) if logged else None
        if experiment:
            place = f"#/experiments/{experiment.experiment_id}/runs"
            return f"{place}?{_PAGE_KIND}&viewStateShareKey={_VIEW_KEY}"
    return f"#/experiments?{_PAGE_KIND}"


ModelFactory = Callable[[Cell], Any]


def log_missing_runs(
    project: Project, rows_by_run: Mapping[str, Sequence[Row]] | None = None
) -> bool:
    """Log every completed run that MLflow lacks; a failure is a warning, and False.

    The run that has just ended is one of them; its rows may be ``rows_by_run`` by its
    id. Where MLflow is not installed, they wait until it is. Where others are missing,
    runs that a killed process left open are marked as killed.
    """
    missing = records.unlogged_runs(project) if find_spec("mlflow") else []
    if not missing:
        return True
    done = True
    try:
        prepare_environment(project.root)
        with file_locked(project.state / "mlflow.lock"):
            if len(missing) > 1:
                store.close_dead_runs(connect(project))
            for record in records.unlogged_runs(project):  # read under the lock
                ids = records.run_ids(project, record.pipeline, "completed", 1)
                newest = ids == [record.id]
                report = project.reports / record.pipeline if newest else None
                rows = (rows_by_run or {}).get(record.id)
                try:
                    run_id = log_run(project, record, rows=rows, report=report)
                    records.save_record(project, replace(record, mlflow_run=run_id))
                except UserError as error:  # what it stored cannot be read
                    _warn_not_logged(error)
                    done = False
    except Exception as error:  # noqa: BLE001  results stand, whatever MLflow does
        _warn_not_logged(stop_cause(project, error, MLFLOW) or error)
        done = False
    return done


def find_logged_run(project: Project, name: str) -> RunRecord | None:
    """Return a run as MLflow keeps it, by its id there or the one of its record.

    None: MLflow has no such run, or is not installed.
    """
    if not find_spec("mlflow"):
        return None
    from mlflow.artifacts import load_text
    from mlflow.exceptions import MlflowException

    client = connect(project)
    places = [e.experiment_id for e in client.search_experiments()]
    try:
        logged = client.search_runs(places, f"tags.`curvote.run` = '{name}'")
        run = logged[0] if logged else client.get_run(name)
        config, plan = (
            yaml_document.parse_value(load_text(f"{run.info.artifact_uri}/{file}"))
            for file in ("config.yaml", "plan.json")
        )
    except MlflowException:
        return None
    tags = run.data.tags
    command, *overrides = tags["mlflow.source.name"].split(" --set ")
    moment = datetime.fromtimestamp(run.info.start_time / 1000, UTC)
    pipeline, started = command.rpartition(" ")[2], moment.isoformat(timespec="seconds")
    steps = [step for step in plan if isinstance(step["cell"], dict)]  # once a text
    facts = pipeline, started, overrides, config, steps
    return RunRecord(tags["curvote.run"], *facts, status="completed")


def make_database(project: Project) -> None:
    """Create or upgrade MLflow's database, one process at a time."""
    prepare_environment(project.root)
    with file_locked(project.state / "mlflow.lock"):
        connect(project).search_experiments(max_results=1)


def preload(project: Project, *, with_models: bool = True) -> None:
    """Import MLflow and make its database early; failures are ignored.

    ``with_models``: also what logs a new one, and samples the machine meanwhile.
    """
    with contextlib.suppress(Exception):
        if with_models:
            import mlflow.sklearn

            start_sampling()
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
    from curvote.pipeline.run import results
    from curvote.pipeline.run.results import mean_scores

    client = connect(project)
    experiment = store.find_or_make_experiment(client, project, record.pipeline)
    log = ExperimentLog(client, experiment, project, record)
    logged = log.find("curvote.run", record.id)
    if logged:
        return str(logged.info.run_id)
    score_rows = mean_scores(project, record) if rows is None else [*rows]
    make = model_of or partial(results.final_model, project, record)
    scores = words.load_scores(record, score_rows)
    metrics = words.metrics_by_cell(scores)
    if not scores:
        metrics = {**results.production_outcomes(project, record)}
    parts = words.parts_by_cell(record, metrics)
    if scores:
        headline = words.study_headline(record, score_rows)
    else:
        reputations = results.reputations(project, record)
        headline = words.outcomes_headline(metrics, parts, reputations)
    main = words.main_method_scores(scores)
    methods = {score.cell: score.series_name for score in main}
    cells = [
        CellLog(cell, parts[cell], cell_metrics, methods.get(cell, ""), make)
        for cell, cell_metrics in metrics.items()
    ]
    parent = log_run_with_cells(log, cells, headline, report)
    if headline.points:  # the view of the experiment is that of its newest run
        state = json.dumps(_view_state(headline))
        view = {"name": "Headline", "createdAt": 0, "state": state}
        tags = {
            f"mlflow.sharedViewState.{_VIEW_KEY}": json.dumps(view),
            "mlflow.note.content": headline.summary_text,
            "mlflow.experimentKind": "custom_model_development",
        }
        for name, value in tags.items():
            client.set_experiment_tag(log.experiment, name, value)
    return parent


def _warn_not_logged(error: Exception) -> None:
    reason = str(error).strip().rstrip(".").splitlines() or [type(error).__name__]
    lines.write_line(
        f"warning: MLflow could not log ({reason[0]}); the results stand and the next"
        " run tries again.",
        "warning",
    )
