"""Which model `curvote utility` is asked about: a file, MLflow's, or a pipeline's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from curvote.errors import UserError, closest
from curvote.flows import environment
from curvote.protocols.utility.kept import RecordClassifier
from curvote.run.config.yaml_lines import parsed
from curvote.run.project import find_project
from curvote.utility.models.loading import SUFFIXES, Loaded, load, of_skops

URIS: Final = ("runs:/", "models:/")


@dataclass(frozen=True)
class Asked:
    """MODEL as it was written, and what tells it from others of that name."""

    name: str
    project: Path | None = None
    trusted: str | None = None
    cell: Sequence[str] = ()


@dataclass(frozen=True)
class Given:
    """A model, what its reader should be told, and the names MLflow has for columns.

    ``pipeline`` is the one that it is the latest model of, None for any other.
    """

    model: Any
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    pipeline: Any = None


def find(asked: Asked) -> Given:
    """Return the model that is meant; UserError: none, or none that loads safely."""
    given = _found(asked)
    model = given.model
    if isinstance(model, RecordClassifier):  # of all columns; here those that it reads
        return replace(given, model=model.model, names=tuple(model.read))
    return given


def _found(asked: Asked) -> Given:
    path = Path(asked.name)
    if asked.name.startswith(URIS):
        return _of_mlflow(asked)
    if path.suffix.lower() in SUFFIXES or path.is_file():
        loaded = load(path, trusted=Path(asked.trusted) if asked.trusted else None)
        return Given(loaded.model, loaded.notes)
    if asked.trusted:
        raise UserError("--trust-pickle is for a model in a file.")
    return _of_pipeline(asked)


def _of_pipeline(asked: Asked) -> Given:
    from curvote.flows.commands.predict import chosen_cell, model_of
    from curvote.reproduce.lookup import file_of
    from curvote.run.config.parts import part_of
    from curvote.run.history import completed
    from curvote.run.results import RunView

    project = find_project(asked.project)
    _check_known(file_of(project, asked.name).names(), asked.name)
    record = completed(project, asked.name)
    cell = chosen_cell(project, record, list(asked.cell))
    model = model_of(project, record, cell)
    view = RunView(project, record, cell, part_of(record.config, cell))
    return Given(model, pipeline=view)


def _check_known(names: Sequence[str], name: str) -> None:
    if name not in names:
        raise UserError(
            f"{name} is no file of a model ({', '.join(SUFFIXES)}), no URI of MLflow's"
            f" ({', '.join(URIS)}) and no pipeline.{closest(name, names)}"
        )


def _of_mlflow(asked: Asked) -> Given:
    """Fetch a logged model and read it as any file: what it says it trusts is not."""
    folder = _fetched(asked)
    try:
        facts = parsed((folder / "MLmodel").read_text(encoding="utf-8"))
        flavor = facts["flavors"]["sklearn"]
        file = folder / str(flavor["pickled_model"])
    except (OSError, KeyError, TypeError, UserError):
        raise UserError(
            f"{asked.name} is no scikit-learn model of MLflow's; log it by"
            " mlflow.sklearn.log_model(..., serialization_format='skops')."
        ) from None
    loaded = _loaded(asked, file, str(flavor.get("serialization_format")))
    return Given(loaded.model, loaded.notes, _signature(facts))


def _loaded(asked: Asked, file: Path, form: str) -> Loaded:
    if form == "skops":
        return of_skops(file, asked.name)
    if asked.trusted == asked.name:
        return load(file, trusted=file)
    raise UserError(
        f"{asked.name} was logged as {form}, and loading that runs whatever code is in"
        " it: nothing was loaded. If you trust whoever logged it, convert it:\n"
        "  import mlflow.sklearn, skops.io\n"
        f'  skops.io.dump(mlflow.sklearn.load_model("{asked.name}"), "model.skops")\n'
        f"or load it here by naming it: --trust-pickle {asked.name}"
    )


def _fetched(asked: Asked) -> Path:
    """Return the folder of a logged model, of the project's store or the user's."""
    if asked.project or "MLFLOW_TRACKING_URI" not in os.environ:
        environment.prepare(find_project(asked.project).root)
    _check_there(os.environ["MLFLOW_TRACKING_URI"])
    import mlflow
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    mlflow.set_tracking_uri(os.environ["MLFLOW_TRACKING_URI"])
    try:
        with environment.variable("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false"):
            return Path(download_artifacts(artifact_uri=asked.name))
    except (MlflowException, OSError) as error:
        words = str(error).strip().splitlines()[0].rstrip(".")
        raise UserError(f"{asked.name} cannot be had from MLflow: {words}.") from None


def _check_there(uri: str) -> None:
    """Refuse a database that is not there; MLflow would make an empty one."""
    path = uri.removeprefix("sqlite:///")
    if path != uri and not path.startswith("file:") and not Path(path).is_file():
        raise UserError(
            "no model has been logged here: MLflow's database does not exist. Name"
            " another --project, or set MLFLOW_TRACKING_URI."
        )


def _signature(facts: Any) -> tuple[str, ...] | None:
    """Return the names of the columns that the model was logged with, if it was."""
    import json

    try:
        inputs = json.loads(facts["signature"]["inputs"])
        return tuple(str(column["name"]) for column in inputs)
    except (KeyError, TypeError, ValueError):
        return None
