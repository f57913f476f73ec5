"""Runs in MLflow: a parent for each execution, and a child for each cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.system import Part
from curvote.flows.tracking.cells import (
    Metrics,
    axis_step,
    cell_artifacts,
    cell_params,
    chosen_by_rule,
    stage_keys,
    x_axis,
)
from curvote.flows.tracking.model import (
    link_model,
    model_exists,
    model_name,
    save_model,
)
from curvote.flows.tracking.run import ExperimentLog
from curvote.run.plan import fingerprint


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
    digest = fingerprint.json_digest({"stages": keys, "model": entry.method})
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
