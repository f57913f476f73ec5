"""The run that MLflow's list shows: headline, data, files, and the current model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.chain.axis import Cell
from curvote.flows.tracking import headline as words
from curvote.flows.tracking.cell import Told, log_cell
from curvote.flows.tracking.cells import artifacts, plan_rows
from curvote.flows.tracking.headline import Headline
from curvote.flows.tracking.model import link, register
from curvote.flows.tracking.run import Log
from curvote.flows.tracking.store import delete
from curvote.run.config.yaml_lines import as_yaml
from curvote.run.plan import fingerprint
from curvote.run.store.artifacts import Artifact

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

# The parameters of each cell, and the id of its model.
Made = dict[Cell, tuple[dict[str, str], str | None]]

_DIGEST = 36  # letters of a digest that MLflow takes


def log_all(
    log: Log, cells: Sequence[Told], headline: Headline, report: Path | None
) -> str:
    """Log the parent, its cells and files, all or nothing; return the parent's id."""
    name = words.title(log.record, headline)
    parent = log.open(name, {"curvote.run": log.record.id})
    try:
        made = {told.cell: log_cell(log, parent, told) for told in cells}
        _fill(log, parent, made, headline)
        _log_report(log, parent, report)
        _log_model(log, parent, made, headline)
        log.close(parent)
    except BaseException:
        with contextlib.suppress(Exception):
            delete(log.client, log.experiment, parent)
        raise
    return parent


def _fill(log: Log, parent: str, made: Made, headline: Headline) -> None:
    stored = artifacts(log.project, log.record, headline.cell)
    facts = {name: fact for one in stored for name, fact in one.facts.items()}
    points = [*headline.points, *_bound(headline, facts)]
    points += [(name, value, 0) for name, value in words.effort(log.record).items()]
    read, _ = made.get(headline.cell, ({}, None))
    sizes = words.sizes(log.record, read, facts)
    inputs = list(_inputs(stored))
    tags = _tags(log, made, headline) | {"data": ", ".join(map(_name, inputs))}
    log.write(parent, points, _shared(made) | sizes, tags)
    log.client.log_inputs(parent, inputs)
    config = as_yaml(log.record.config)
    log.client.log_text(parent, config, "config.yaml")
    plan = json.dumps(plan_rows(log.record), indent=1)
    log.client.log_text(parent, plan, "plan.json")


def _name(given: DatasetInput) -> str:
    return str(given.dataset.name)


def _shared(made: Made) -> dict[str, str]:
    """Return the parameters that all cells have in common."""
    first, *others = [read for read, _ in made.values()] or [{}]
    return {k: v for k, v in first.items() if all(o.get(k) == v for o in others)}


def _log_model(log: Log, parent: str, made: Made, headline: Headline) -> None:
    """Show the model of the headline; register it as what is current, last of all."""
    _, model = made.get(headline.cell, ({}, None))
    if model:
        link(log.client, parent, model)
        tags = {"curvote.run": log.record.id, "cell": str(headline.cell)}
        tags["headline"] = headline.title
        register(log.client, log.record.pipeline, model, parent, tags)


def _bound(headline: Headline, facts: Mapping[str, Any]) -> Iterator[words.Point]:
    """Yield the best value that is possible, in a study whose data set knows it."""
    best = facts.get(headline.metric.bound) if headline.metric else None
    for step in sorted({at for _, _, at in headline.points}):
        if headline.metric and best is not None:
            yield f"{headline.metric.name}.bayes", float(best), step


def _tags(log: Log, made: Made, headline: Headline) -> dict[str, str]:
    record = log.record
    protocols = dict.fromkeys(cell["protocol"] or "" for cell in made)
    return {
        "protocol": ", ".join(protocols),
        "headline": str(headline.cell),
        "pipeline_key": fingerprint.of_json([each["key"] for each in record.steps]),
        "mlflow.source.name": words.command(record),
        "mlflow.source.type": "LOCAL",
        "mlflow.note.content": words.note(record, headline),
    }


def _inputs(stored: Iterable[Artifact]) -> Iterator[DatasetInput]:
    """Yield what the chain began with: names and digests, no value and no row.

    Of a file that nobody published only the keyed digest is known here.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    for one in stored:
        components = one.manifest["components"]
        if components["inputs"]:
            continue
        source = components["params"].get("source", {}).get("name", one.stage)
        for file in one.facts.get("raw") or [{"name": source, "key": one.key}]:
            digest = file.get("sha256") or file.get("hmac_sha256") or one.key
            data = Dataset(source, digest[:_DIGEST], "curvote", json.dumps(file))
            yield DatasetInput(data, [InputTag("mlflow.data.context", "source")])


def _log_report(log: Log, parent: str, folder: Path | None) -> None:
    """Log the HTML report and its figures, or link the run that holds them."""
    files = _report_files(folder) if folder else []
    if not folder or not files:
        return
    digest = fingerprint.of_json(
        {str(f.relative_to(folder)): fingerprint.of_file(f) for f in files}
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
    found = (folder / "report.html", *sorted((folder / "figures").glob("*.png")))
    return [file for file in found if file.is_file()]
