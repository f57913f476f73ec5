"""Model of `curvote utility`: a file, a logged model of MLflow, or a pipeline's."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from curvote.base.errors import UserError, suggest_closest
from curvote.flows import environment
from curvote.pipeline.config.project import find_project
from curvote.pipeline.config.yaml_document import parse_value
from curvote.systems.utility.method.models.loading import (
    SUFFIXES,
    load_model,
    load_skops,
)
from curvote.systems.utility.model import RecordClassifier
from curvote.systems.utility.request import GivenModel

URIS: Final = ("runs:/", "models:/")


@dataclass(frozen=True)
class ModelRequest:
    """Request for a model: MODEL as written, and its qualifiers."""

    name: str
    project: Path | None = None
    trusted: str | None = None
    cell: Sequence[str] = ()


def find_model(request: ModelRequest) -> GivenModel:
    """Return the requested model; UserError: none, or none that loads safely."""
    given_model = _locate_model(request)
    model = given_model.model
    if isinstance(model, RecordClassifier):  # of all columns; here those that it reads
        return replace(given_model, model=model.model, names=tuple(model.read))
    return given_model


def _locate_model(request: ModelRequest) -> GivenModel:
    """Return the model by the kind of its name."""
    path = Path(request.name)
    if request.name.startswith(URIS):
        return _mlflow_model(request)
    if path.suffix.lower() in SUFFIXES or path.is_file():
        trusted = Path(request.trusted) if request.trusted else None
        loaded = load_model(path, trusted=trusted)
        return GivenModel(loaded.model, loaded.notes)
    if request.trusted:
        raise UserError("--trust-pickle is for a model in a file.")
    from curvote.cli.commands.predict import choose_cell, model_of_cell
    from curvote.papers.registry import file_of
    from curvote.pipeline.config.settings import part_of_cell
    from curvote.pipeline.run.results import RunView
    from curvote.pipeline.store.records import completed_run

    project = find_project(request.project)
    name, names = request.name, file_of(project, request.name).names()
    if name not in names:
        raise UserError(
            f"{name} is no file of a model ({', '.join(SUFFIXES)}), no URI of MLflow's"
            f" ({', '.join(URIS)}) and no pipeline.{suggest_closest(name, names)}"
        )
    record = completed_run(project, request.name)
    cell = choose_cell(project, record, list(request.cell))
    model = model_of_cell(project, record, cell)
    view = RunView(project, record, cell, part_of_cell(record.config, cell))
    return GivenModel(model, pipeline=view)


def _mlflow_model(request: ModelRequest) -> GivenModel:
    """Return a logged model, loaded like any file."""
    folder = _fetch_logged(request)
    try:
        metadata = parse_value((folder / "MLmodel").read_text(encoding="utf-8"))
        flavor = metadata["flavors"]["sklearn"]
        file = folder / str(flavor["pickled_model"])
    except (OSError, KeyError, TypeError, UserError):
        raise UserError(
            f"{request.name} is no scikit-learn model of MLflow's; log it by"
            " mlflow.sklearn.log_model(..., serialization_format='skops')."
        ) from None
    name, form = request.name, str(flavor.get("serialization_format"))
    if form == "skops":
        loaded = load_skops(file, name)
    elif request.trusted == name:
        loaded = load_model(file, trusted=file)
    else:
        raise UserError(
            f"{name} was logged as {form}, and loading that runs whatever code is in"
            " it: nothing was loaded. If you trust whoever logged it, convert it:\n"
            "  import mlflow.sklearn, skops.io\n"
            f'  skops.io.dump(mlflow.sklearn.load_model("{name}"), "model.skops")\n'
            f"or load it here by naming it: --trust-pickle {name}"
        )
    try:
        inputs = json.loads(metadata["signature"]["inputs"])
        names = tuple(str(column["name"]) for column in inputs)
    except (KeyError, TypeError, ValueError):
        names = None
    return GivenModel(loaded.model, loaded.notes, names)


def _fetch_logged(request: ModelRequest) -> Path:
    """Return the folder of a logged model, of the project's store or the user's."""
    if request.project or "MLFLOW_TRACKING_URI" not in os.environ:
        environment.prepare_environment(find_project(request.project).root)
    uri = os.environ["MLFLOW_TRACKING_URI"]
    path = uri.removeprefix("sqlite:///")
    if path != uri and not path.startswith("file:") and not Path(path).is_file():
        raise UserError(
            "no model has been logged here: MLflow's database does not exist. Name"
            " another --project, or set MLFLOW_TRACKING_URI."
        )
    import mlflow
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    mlflow.set_tracking_uri(os.environ["MLFLOW_TRACKING_URI"])
    try:
        with environment.variable_set("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false"):
            return Path(download_artifacts(artifact_uri=request.name))
    except (MlflowException, OSError) as error:
        words = str(error).strip().splitlines()[0].rstrip(".")
        raise UserError(f"{request.name} cannot be had from MLflow: {words}.") from None
