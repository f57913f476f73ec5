"""Runs in MLflow: a parent for each execution, and a child for each cell."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.chain.axis import Cell
from curvote.chain.system import Part
from curvote.flows.environment import process_tag
from curvote.flows.tracking import headline as words
from curvote.flows.tracking.cells import (
    Metrics,
    axis_step,
    cell_artifacts,
    cell_params,
    chosen_by_rule,
    plan_rows,
    stage_keys,
    x_axis,
)
from curvote.flows.tracking.headline import Headline, Point
from curvote.flows.tracking.model import (
    installed_version,
    link_model,
    model_exists,
    model_name,
    register_model,
    save_model,
)
from curvote.flows.tracking.store import delete_run
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.plan.step import file_digest, json_digest
from curvote.pipeline.store.artifacts import Artifact
from curvote.pipeline.store.records import RunRecord

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Run


_BATCH_SIZE = 100  # more parameters or tags at once are refused


@dataclass(frozen=True)
class ExperimentLog:
    """The writer of one record into one MLflow experiment."""

    client: MlflowClient
    experiment: str
    project: Project
    record: RunRecord

    @property
    def start(self) -> int:
        """The start of the run in milliseconds since 1970."""
        return _to_milliseconds(self.record.started)

    @property
    def end(self) -> int:
        """The end of the run in milliseconds since 1970."""
        return _to_milliseconds(self.record.finished or self.record.started)

    def open(self, name: str, tags: Mapping[str, str]) -> str:
        """Create an open MLflow run and return its id."""
        mode = self.record.config.get("mode", "study")
        run_tags = {
            "mode": mode,
            # A study's noise comes from its seed, which can remove it again.
            "private": str(mode == "production").lower(),
            "curvote.pid": process_tag(),
            "code_version": installed_version("curvote"),
        }
        run = self.client.create_run(
            self.experiment, self.start, run_tags | dict(tags), name
        )
        return str(run.info.run_id)

    def close(self, run_id: str) -> None:
        """Mark an MLflow run as finished at the record's end."""
        self.client.set_terminated(run_id, "FINISHED", self.end)

    def find(self, tag: str, value: str) -> Run | None:
        """Return the latest finished run that carries a tag."""
        wanted = f"tags.`{tag}` = '{value}' and attributes.status = 'FINISHED'"
        finished = self.client.search_runs(
            [self.experiment],
            wanted,
            max_results=1,
            order_by=["attributes.start_time DESC"],
        )
        return finished[0] if finished else None

    def write(
        self,
        run_id: str,
        points: Iterable[Point],
        params: Mapping[str, str],
        tags: Mapping[str, str],
        model: str | None = None,
    ) -> None:
        """Log metrics (also of the ``model``), parameters and tags."""
        from mlflow.entities import Metric, Param, RunTag

        metrics = [Metric(n, v, self.end, at, model) for n, v, at in points]
        read = [Param(*pair) for pair in params.items()]
        marks = [RunTag(*pair) for pair in tags.items()]
        for start in range(0, max(len(metrics), len(read), len(marks)), _BATCH_SIZE):
            part = slice(start, start + _BATCH_SIZE)
            self.client.log_batch(run_id, metrics[part], read[part], marks[part])


def _to_milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


@dataclass(frozen=True)
class CellLog:
    """A cell to be logged: its part, metrics, method, and model factory.

    ``part`` is what it was configured as, ``method`` what the model is scored as.
    """

    cell: Cell
    part: Part
    metrics: Metrics
    method: str
    make: Callable[[Cell], Any]


def log_cell(
    log: ExperimentLog, parent: str, entry: CellLog
) -> tuple[dict[str, str], str | None]:
    """Log the child run of a cell; return its parameters and its model's id."""
    cell, record = entry.cell, log.record
    keys = stage_keys(record, cell)
    read = cell_params(record, cell, cell_artifacts(log.project, record, cell))
    name = str(cell) or record.pipeline
    run_id = log.open(name, {"mlflow.parentRunId": parent})
    digest = json_digest({"stages": keys, "model": entry.method})
    model = _link_earlier_model(log, run_id, digest) or _log_cell_model(
        log, run_id, entry, read
    )
    tags = {f"key.{stage}": key for stage, key in keys.items()}
    tags |= chosen_by_rule(entry.part) | {"cell_digest": digest}
    tags |= {"model_uri": f"models:/{model}"} if model else {}
    place = axis_step(cell, x_axis(entry.part))
    points = [(name, value, place) for name, value in entry.metrics.items()]
    log.write(run_id, points, read, tags, model)
    log.close(run_id)
    return read, model


def _link_earlier_model(log: ExperimentLog, run_id: str, digest: str) -> str | None:
    """Link the model of an earlier run with equal artifacts, if there is one."""
    earlier = log.find("cell_digest", digest)
    uri = earlier.data.tags.get("model_uri") if earlier else None
    model = uri.removeprefix("models:/") if uri else None
    if not model or not model_exists(log.client, model):
        return None
    link_model(log.client, run_id, model)
    return model


def _log_cell_model(
    log: ExperimentLog, run_id: str, entry: CellLog, read: dict[str, str]
) -> str | None:
    """Log the final model under the names of pipeline, cell and method."""
    fitted_model = entry.make(entry.cell)
    if fitted_model is None:
        return None
    # Made here: otherwise, with no active run, MLflow puts a model into the default
    # experiment, in a folder of wherever this was started.
    name = model_name(log.record.pipeline, str(entry.cell), entry.method)
    place = log.client.create_logged_model(log.experiment, name, run_id, params=read)
    save_model(run_id, place.model_id, fitted_model)
    return str(place.model_id)


# The parameters of each cell, and the id of its model.
LoggedCells = dict[Cell, tuple[dict[str, str], str | None]]

_DIGEST_LENGTH = 36  # letters of a digest that MLflow takes


def log_run_with_cells(
    log: ExperimentLog,
    cells: Sequence[CellLog],
    headline: Headline,
    report: Path | None,
) -> str:
    """Log parent, cells and files, all or nothing; return the parent's id."""
    name = words.run_title(log.record, headline)
    parent = log.open(name, {"curvote.run": log.record.id})
    try:
        logged = {entry.cell: log_cell(log, parent, entry) for entry in cells}
        _fill_parent(log, parent, logged, headline)
        _log_report(log, parent, report)
        _log_headline_model(log, parent, logged, headline)
        log.close(parent)
    except BaseException:
        with contextlib.suppress(Exception):
            delete_run(log.client, log.experiment, parent)
        raise
    return parent


def _fill_parent(
    log: ExperimentLog, parent: str, logged: LoggedCells, headline: Headline
) -> None:
    stored = cell_artifacts(log.project, log.record, headline.cell)
    facts = {
        name: fact
        for stored_artifact in stored
        for name, fact in stored_artifact.metadata.items()
    }
    points = [*headline.points, *_bound_points(headline, facts)]
    points += [(name, value, 0) for name, value in words.run_effort(log.record).items()]
    read, _ = logged.get(headline.cell, ({}, None))
    sizes = words.run_sizes(log.record, read, facts)
    inputs = list(_source_inputs(stored))
    tags = _parent_tags(log, logged, headline) | {
        "data": ", ".join(map(_dataset_name, inputs))
    }
    log.write(parent, points, _shared_params(logged) | sizes, tags)
    log.client.log_inputs(parent, inputs)
    config = as_yaml(log.record.config)
    log.client.log_text(parent, config, "config.yaml")
    plan = json.dumps(plan_rows(log.record), indent=1)
    log.client.log_text(parent, plan, "plan.json")


def _dataset_name(dataset_input: DatasetInput) -> str:
    return str(dataset_input.dataset.name)


def _shared_params(logged: LoggedCells) -> dict[str, str]:
    """Return the parameters that all cells have in common."""
    first, *other_params = [read for read, _ in logged.values()] or [{}]
    return {k: v for k, v in first.items() if all(o.get(k) == v for o in other_params)}


def _log_headline_model(
    log: ExperimentLog, parent: str, logged: LoggedCells, headline: Headline
) -> None:
    """Link the headline's model, and register it as the current one."""
    _, model = logged.get(headline.cell, ({}, None))
    if model:
        link_model(log.client, parent, model)
        tags = {"curvote.run": log.record.id, "cell": str(headline.cell)}
        tags["headline"] = headline.title
        register_model(log.client, log.record.pipeline, model, parent, tags)


def _bound_points(
    headline: Headline, facts: Mapping[str, Any]
) -> Iterator[words.Point]:
    """Yield the best possible value at each step, if the data set knows it."""
    best = facts.get(headline.metric.bound) if headline.metric else None
    for step in sorted({at for _, _, at in headline.points}):
        if headline.metric and best is not None:
            yield f"{headline.metric.name}.bayes", float(best), step


def _parent_tags(
    log: ExperimentLog, logged: LoggedCells, headline: Headline
) -> dict[str, str]:
    record = log.record
    protocols = dict.fromkeys(cell["protocol"] or "" for cell in logged)
    return {
        "protocol": ", ".join(protocols),
        "headline": str(headline.cell),
        "pipeline_key": json_digest([entry["key"] for entry in record.steps]),
        "mlflow.source.name": words.run_command(record),
        "mlflow.source.type": "LOCAL",
        "mlflow.note.content": words.run_description(record, headline),
    }


def _source_inputs(stored: Iterable[Artifact]) -> Iterator[DatasetInput]:
    """Yield the run's data sets: names and digests, no values.

    Of a file that nobody published only the keyed digest is known here.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    for stored_artifact in stored:
        components = stored_artifact.manifest["components"]
        if components["inputs"]:
            continue
        source = (
            components["params"].get("source", {}).get("name", stored_artifact.stage)
        )
        for file in stored_artifact.metadata.get("raw") or [
            {"name": source, "key": stored_artifact.key}
        ]:
            digest = (
                file.get("sha256") or file.get("hmac_sha256") or stored_artifact.key
            )
            data = Dataset(source, digest[:_DIGEST_LENGTH], "curvote", json.dumps(file))
            yield DatasetInput(data, [InputTag("mlflow.data.context", "source")])


def _log_report(log: ExperimentLog, parent: str, folder: Path | None) -> None:
    """Log the HTML report and its figures, or link the run with equal ones."""
    files = _report_files(folder) if folder else []
    if not folder or not files:
        return
    digest = json_digest({str(f.relative_to(folder)): file_digest(f) for f in files})
    earlier = log.find("report_digest", digest)
    holder = earlier.data.tags["figures_run"] if earlier else parent
    if not earlier:
        for file in files:
            place = file.parent.relative_to(folder).as_posix()
            log.client.log_artifact(parent, str(file), place.strip(".") or None)
    log.client.set_tag(parent, "report_digest", digest)
    log.client.set_tag(parent, "figures_run", holder)


def _report_files(folder: Path) -> list[Path]:
    candidates = (folder / "report.html", *sorted((folder / "figures").glob("*.png")))
    return [file for file in candidates if file.is_file()]
