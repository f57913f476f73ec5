"""What MLflow holds of one cell: parameters, metrics, stage keys, the final model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.system import Part
from curvote.flows.tracking.cells import (
    Metrics,
    artifacts,
    choice,
    params,
    stage_keys,
    step,
    x_of,
)
from curvote.flows.tracking.model import exists, link, model_name, save_model
from curvote.flows.tracking.run import Log
from curvote.run.plan import fingerprint


@dataclass(frozen=True)
class Told:
    """A cell, its metrics, and how its model is made: None where there is none.

    ``part`` is what it was configured as, ``method`` what the model is scored as.
    """

    cell: Cell
    part: Part
    metrics: Metrics
    method: str
    make: Callable[[Cell], Any]


def log_cell(log: Log, parent: str, told: Told) -> tuple[dict[str, str], str | None]:
    """Log the child of a cell; return its parameters and the id of its model."""
    cell, record = told.cell, log.record
    keys = stage_keys(record, cell)
    read = params(record, cell, artifacts(log.project, record, cell))
    name = str(cell) or record.pipeline
    run_id = log.open(name, {"mlflow.parentRunId": parent})
    digest = fingerprint.of_json({"stages": keys, "model": told.method})
    model = _linked(log, run_id, digest) or _made(log, run_id, told, read)
    tags = {f"key.{stage}": key for stage, key in keys.items()}
    tags |= choice(told.part) | {"cell_digest": digest}
    tags |= {"model_uri": f"models:/{model}"} if model else {}
    place = step(cell, x_of(told.part))
    points = [(name, value, place) for name, value in told.metrics.items()]
    log.write(run_id, points, read, tags, model)
    log.close(run_id)
    return read, model


def _linked(log: Log, run_id: str, digest: str) -> str | None:
    """Link the model that an earlier run made of equal artifacts, if there is one."""
    earlier = log.find("cell_digest", digest)
    uri = earlier.data.tags.get("model_uri") if earlier else None
    model = uri.removeprefix("models:/") if uri else None
    if not model or not exists(log.client, model):
        return None
    link(log.client, run_id, model)
    return model


def _made(log: Log, run_id: str, told: Told, read: dict[str, str]) -> str | None:
    """Log the final model under the names of pipeline, cell and method."""
    made = told.make(told.cell)
    if made is None:
        return None
    # Made here: otherwise, with no active run, MLflow puts a model into the default
    # experiment, in a folder of wherever this was started.
    name = model_name(log.record.pipeline, str(told.cell), told.method)
    place = log.client.create_logged_model(log.experiment, name, run_id, params=read)
    save_model(run_id, place.model_id, made)
    return str(place.model_id)
