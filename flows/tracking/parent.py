"""Parent run in MLflow: headline, data, files, and the current model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.chain.axis import Cell
from curvote.flows.tracking import headline as words
from curvote.flows.tracking.cell import CellLog, log_cell
from curvote.flows.tracking.cells import cell_artifacts, plan_rows
from curvote.flows.tracking.headline import Headline
from curvote.flows.tracking.model import link_model, register_model
from curvote.flows.tracking.run import ExperimentLog
from curvote.flows.tracking.store import delete_run
from curvote.run.config.yaml_lines import as_yaml
from curvote.run.plan import fingerprint
from curvote.run.store.artifacts import Artifact

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

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
        "pipeline_key": fingerprint.json_digest(
            [entry["key"] for entry in record.steps]
        ),
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
    digest = fingerprint.json_digest(
        {str(f.relative_to(folder)): fingerprint.file_digest(f) for f in files}
    )
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
