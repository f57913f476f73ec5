"""What MLflow shows: one run for each execution, a child for each of its cells.

Everything is logged once, after the results stand; what could not be logged is logged
by the next run. MLflow is imported inside functions only.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.chain.axis import Cell
from curvote.run import history
from curvote.run.config.parts import part_of
from curvote.run.history import RunRecord
from curvote.run.plan import fingerprint
from curvote.run.project import Project
from flows.cells import Metrics, Rows, by_cell, named, scalars, stage_keys
from flows.environment import locked, prepare, process_tag
from flows.mlflow_model import save_model, version_of
from flows.mlflow_store import connect, delete, experiment_id, sweep

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

ModelOf = Callable[[Cell], Any]


def repair(project: Project) -> None:
    """Log every completed run that MLflow does not have; a failure is only a warning.

    The run that has just ended is one of them. Runs that a killed process left open
    are marked as killed.
    """
    runs = [r for r in history.load_all(project) if r.status == "completed"]
    if all(record.mlflow_run for record in runs):
        return
    try:
        prepare(project.root)
        with locked(project.state / "mlflow.lock"):
            sweep(connect(project))
            _log_missing(project)
    except Exception as error:  # noqa: BLE001  results stand, whatever MLflow does
        _warn(error)


def initialise(project: Project) -> None:
    """Make or upgrade MLflow's database, one process at a time; seconds when new."""
    prepare(project.root)
    with locked(project.state / "mlflow.lock"):
        connect(project).search_experiments(max_results=1)


def preload(project: Project) -> None:
    """Import MLflow and make its database early; a failure is left to `repair`."""
    with contextlib.suppress(Exception):
        import mlflow.sklearn  # noqa: F401  for later

        if not (project.state / "mlflow.db").exists():
            initialise(project)


def log_run(
    project: Project,
    record: RunRecord,
    *,
    rows: Rows | None = None,
    model_of: ModelOf | None = None,
    report: Path | None = None,
) -> str:
    """Log one execution and return the id of its parent run.

    Metrics are logged anew each time; a model or figures that were logged before from
    equal artifacts are linked. A run that is logged already is left as it is.

    Args:
        project: the project; `flows.environment.prepare` chose the tracking store.
        record: what was run, finished.
        rows: as ``scores --json``; by default those of the record.
        model_of: the final classifier of a cell; by default that of the record.
        report: the folder with report.html and figures/; absent parts are passed over.

    Raises:
        Exception: whatever MLflow, the store or the file system raises. What was
            logged by then is deleted.
    """
    metrics = by_cell(rows or [])
    if rows is None or model_of is None:
        from curvote.run.results import final_model, outcomes, summary

        if rows is None:
            shown = by_cell(summary(project, record))
            metrics = shown or outcomes(project, record)
        model_of = model_of or partial(final_model, project, record)
    client = connect(project)
    log = _Log(client, experiment_id(client, project, record.pipeline), record)
    known = log.find("curvote.run", record.id)
    return known.info.run_id if known else log.everything(metrics, model_of, report)


@dataclass(frozen=True)
class _Log:
    """One record on its way into one experiment."""

    client: MlflowClient
    experiment: str
    record: RunRecord

    @property
    def start(self) -> int:
        """Milliseconds since 1970."""
        return _millis(self.record.started)

    @property
    def end(self) -> int:
        """Milliseconds since 1970."""
        return _millis(self.record.finished or self.record.started)

    def everything(
        self, metrics: dict[Cell, Metrics], model_of: ModelOf, report: Path | None
    ) -> str:
        """Log parent, cells and report; all or nothing."""
        parent = self.open(self.record.id, {"curvote.run": self.record.id})
        try:
            for cell, own in metrics.items():
                self.cell(parent, cell, own, model_of)
            self.report(parent, report)
            self.close(parent)
        except BaseException:
            with contextlib.suppress(Exception):
                delete(self.client, self.experiment, parent)
            raise
        return parent

    def open(self, name: str, tags: Mapping[str, str]) -> str:
        """Create a run under way and return its id."""
        mode = self.record.config.get("mode", "study")
        own = {
            "mode": mode,
            # A study's noise comes from its seed, which can remove it again.
            "private": str(mode == "production").lower(),
            "curvote.pid": process_tag(),
            "code_version": version_of("curvote"),
        }
        run = self.client.create_run(
            self.experiment, self.start, own | dict(tags), name
        )
        return str(run.info.run_id)

    def close(self, run_id: str) -> None:
        """Mark a run as finished when the execution was."""
        self.client.set_terminated(run_id, "FINISHED", self.end)

    def find(self, tag: str, value: str) -> Run | None:
        """Return the latest finished run that carries a tag."""
        wanted = f"tags.`{tag}` = '{value}' and attributes.status = 'FINISHED'"
        found = self.client.search_runs(
            [self.experiment],
            wanted,
            max_results=1,
            order_by=["attributes.start_time DESC"],
        )
        return found[0] if found else None

    def cell(
        self, parent: str, cell: Cell, metrics: Metrics, model_of: ModelOf
    ) -> None:
        """Log the child of one (protocol, epsilon, learner)."""
        from mlflow.entities import Metric, Param, RunTag

        keys = stage_keys(self.record, cell)
        earlier = self.find("cell_digest", fingerprint.of_json(keys))
        run_id = self.open(str(cell), {"mlflow.parentRunId": parent})
        params = scalars(self.record.config) | named(cell)
        tags = {f"key.{stage}": key for stage, key in keys.items()}
        tags |= _choice(self.record, cell)
        tags |= self.model(run_id, cell, params, earlier, model_of)
        self.client.log_batch(
            run_id,
            [Metric(name, metrics[name], self.end, 0) for name in _shown(metrics)],
            [Param(name, value) for name, value in params.items()],
            [
                RunTag(*tag)
                for tag in {**tags, "cell_digest": fingerprint.of_json(keys)}.items()
            ],
        )
        self.close(run_id)

    def model(
        self,
        run_id: str,
        cell: Cell,
        params: dict[str, str],
        earlier: Run | None,
        model_of: ModelOf,
    ) -> dict[str, str]:
        """Log the final classifier, or link the one that is there."""
        uri = earlier.data.tags.get("model_uri") if earlier else None
        if earlier and uri and self.exists(uri):
            return {"model_uri": uri, "linked": earlier.info.run_id}
        made = model_of(cell)
        if made is None:
            return {}
        # Made here: otherwise, with no active run, MLflow puts a model into the default
        # experiment, in a folder of wherever this was started.
        place = self.client.create_logged_model(
            self.experiment, "classifier", run_id, params=params
        )
        return {"model_uri": save_model(run_id, place.model_id, made)}

    def exists(self, uri: str) -> bool:
        """Say whether a logged model has not been deleted since."""
        from mlflow.exceptions import MlflowException

        try:
            return bool(self.client.get_logged_model(uri.removeprefix("models:/")))
        except MlflowException:
            return False

    def report(self, parent: str, folder: Path | None) -> None:
        """Log the HTML report and its figures, or link the run that holds them."""
        files = _report_files(folder) if folder else []
        if not folder or not files:
            return
        digest = fingerprint.of_json(
            {str(f.relative_to(folder)): fingerprint.of_file(f) for f in files}
        )
        earlier = self.find("report_digest", digest)
        holder = earlier.data.tags["figures_run"] if earlier else parent
        if not earlier:
            for file in files:
                place = file.parent.relative_to(folder).as_posix()
                self.client.log_artifact(parent, str(file), place.strip(".") or None)
        self.client.set_tag(parent, "report_digest", digest)
        self.client.set_tag(parent, "figures_run", holder)


def _log_missing(project: Project) -> None:
    """Log what the records, read again under the lock, say is missing."""
    runs = [r for r in history.load_all(project) if r.status == "completed"]
    latest = {record.pipeline: record.id for record in runs}
    for record in runs:
        if record.mlflow_run is None:
            newest = latest[record.pipeline] == record.id
            report = project.reports / record.pipeline if newest else None
            run_id = log_run(project, record, report=report)
            history.save(project, replace(record, mlflow_run=run_id))


def _choice(record: RunRecord, cell: Cell) -> dict[str, str]:
    """Return what a rule took for a cell and why, if it was asked."""
    part = part_of(record.config, cell)
    return {"arm": part.method, "why": part.reason} if part.reason else {}


def _shown(metrics: Metrics) -> list[str]:
    """Return the metrics' names; MLflow's comparison opens with the first one."""
    return sorted(metrics, key=lambda name: name != "misclassification.mrma")


def _report_files(folder: Path) -> list[Path]:
    found = (folder / "report.html", *sorted((folder / "figures").glob("*.png")))
    return [file for file in found if file.is_file()]


def _millis(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


def _warn(error: Exception) -> None:
    reason = str(error).strip().splitlines() or [type(error).__name__]
    print(
        f"warning: MLflow could not log ({reason[0]}); the results stand and the next"
        " run tries again.",
        file=sys.stderr,
    )
