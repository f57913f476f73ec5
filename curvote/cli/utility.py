"""Command `curvote utility`: agreement under noise, and what to send.

MODEL is a file, a logged model of MLflow, or a pipeline's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from curvote.base.errors import UserError, suggest_closest
from curvote.cli import terminal
from curvote.flows import environment
from curvote.pipeline.config.project import find_project

if TYPE_CHECKING:
    from curvote.systems.utility.request import GivenModel


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A .skops file, runs:/... or models:/... of MLflow, a pipeline's name.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="CSV or Parquet: the records to be noised."),
]
Sensitive = Annotated[
    str | None, typer.Option(help="The features that are noised: age,bmi.")
]
Bounds = Annotated[
    list[str], typer.Option("--bounds", help="Public bounds of one: age=0:100.")
]
Epsilon = Annotated[
    list[float], typer.Option("--epsilon", help="The record's total; repeatable.")
]
Target = Annotated[float | None, typer.Option(help="The agreement to reach: 0.8.")]
Metric = Annotated[str, typer.Option(help="agreement, or accuracy: of the target.")]
Share = Annotated[
    float | None,
    typer.Option(help="The target is for this share of records, not on average."),
]
Label = Annotated[str | None, typer.Option(help="The column of the true class.")]
Positive = Annotated[
    str | None, typer.Option(help="The label's value that is the second class.")
]
Group = Annotated[str | None, typer.Option(help="Say it for each value of a column.")]
Public = Annotated[
    Path | None, typer.Option(help="CSV or Parquet of public records: a prior.")
]
Train = Annotated[
    Path | None, typer.Option(help="The model's training data: retrain, or without.")
]
Mechanisms = Annotated[
    list[str], typer.Option("--mechanism", help="Only these; repeatable.")
]
Reads = Annotated[
    list[str], typer.Option("--read", help="raw, decode (--public), retrain (--train).")
]
Features = Annotated[
    str | None, typer.Option(help="The model's columns, if it keeps no names.")
]
Rows = Annotated[
    int | None, typer.Option(min=1, help="Records to take (default: up to 1000).")
]
Confidence = Annotated[float, typer.Option(help="Of what is drawn or sampled.")]
DrawsOption = Annotated[
    int, typer.Option("--draws", help="Of each record, where nothing exact is known.")
]
Delta = Annotated[float, typer.Option(help="For mechanisms that need one: gaussian.")]
ClientSide = Annotated[
    bool, typer.Option("--client-side", help="Clients can run the model.")
]
AsPublished = Annotated[
    bool, typer.Option("--as-published", help="Add the published figure: slow.")
]
TrustPickle = Annotated[
    str | None, typer.Option(help="The very MODEL, if a pickle: its code is run.")
]
Cell = Annotated[
    list[str], typer.Option("--cell", help="Of a pipeline's models: epsilon=2.")
]
FigureOption = Annotated[
    Path | None, typer.Option("--figure", help="PNG (default: beside the data).")
]


def utility(  # noqa: PLR0917 - the options of a command are its arguments
    model: Model,
    data: Data = None,
    sensitive: Sensitive = None,
    bounds: Bounds = [],  # noqa: B006 - typer copies the default
    epsilon: Epsilon = [1, 2, 4, 8],  # noqa: B006 - typer copies the default
    target: Target = None,
    metric: Metric = "agreement",
    share: Share = None,
    label: Label = None,
    positive: Positive = None,
    group: Group = None,
    public: Public = None,
    train: Train = None,
    mechanism: Mechanisms = [],  # noqa: B006 - typer copies the default
    read: Reads = [],  # noqa: B006 - typer copies the default
    features: Features = None,
    rows: Rows = None,
    confidence: Confidence = 0.95,
    draws: DrawsOption = 2000,
    delta: Delta = 0.0,
    client_side: ClientSide = False,
    as_published: AsPublished = False,
    trust_pickle: TrustPickle = None,
    cell: Cell = [],  # noqa: B006 - typer copies the default
    figure: FigureOption = None,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Say how often a classifier's answers survive noise, and what to send instead."""
    from curvote.cli import utility_output as output
    from curvote.systems.utility import request as requests

    terms = requests.check_terms(
        epsilon,
        mechanism,
        read,
        target=target,
        metric=metric,
        share=share,
        confidence=confidence,
        draws=draws,
        delta=delta,
        as_published=as_published,
    )
    options = requests.Options(
        data=data,
        sensitive=sensitive,
        bounds=bounds,
        features=features,
        label=label,
        positive=positive,
        group=group,
        public=public,
        train=train,
        rows=rows or (requests.ROWS_AS_PUBLISHED if as_published else requests.ROWS),
        client_side=client_side,
    )
    say = terminal.numbered_lines(5 if as_published else 4)
    given_model = find_model(ModelRequest(model, project, trust_pickle, cell))
    request = requests.prepare(given_model, options)
    say(f"{request.described.kind}, {request.setting.n} of {request.total} records")
    for note in request.notes:
        typer.echo(f"note: {note}", err=True)
    analysis = requests.analyse(request, terms, say)
    if as_json:
        terminal.print_json(output.analysis_document(analysis))
        return
    output.print_analysis(analysis)
    if figure is None:
        figure = Path(f"{model}-utility.png")
        if data is not None:
            figure = data.with_name(f"{data.stem}-utility.png")
    path = terminal.relative_to_here(output.draw_figure(analysis, figure))
    typer.echo(f"\nfigure: {path}")


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
    from curvote.systems.utility.model import RecordClassifier

    given_model = _locate_model(request)
    model = given_model.model
    if isinstance(model, RecordClassifier):  # of all columns; here those that it reads
        return replace(given_model, model=model.model, names=tuple(model.read))
    return given_model


def _locate_model(request: ModelRequest) -> GivenModel:
    """Return the model by the kind of its name."""
    from curvote.systems.utility.method.models import loading
    from curvote.systems.utility.request import GivenModel

    path = Path(request.name)
    if request.name.startswith(URIS):
        return _mlflow_model(request)
    if path.suffix.lower() in loading.SUFFIXES or path.is_file():
        trusted = Path(request.trusted) if request.trusted else None
        loaded = loading.load_model(path, trusted=trusted)
        return GivenModel(loaded.model, loaded.notes)
    if request.trusted:
        raise UserError("--trust-pickle is for a model in a file.")
    from curvote.cli.commands import predict
    from curvote.papers.registry import file_of
    from curvote.pipeline.config.settings import part_of_cell
    from curvote.pipeline.run.results import RunView
    from curvote.pipeline.store.records import completed_run

    project = find_project(request.project)
    name, names = request.name, file_of(project, request.name).names()
    if name not in names:
        raise UserError(
            f"{name} is no file of a model ({', '.join(loading.SUFFIXES)}), no URI of"
            f" MLflow's ({', '.join(URIS)}) and no pipeline."
            f"{suggest_closest(name, names)}"
        )
    record = completed_run(project, request.name)
    cell = predict.choose_cell(project, record, list(request.cell))
    model = predict.model_of_cell(project, record, cell)
    view = RunView(project, record, cell, part_of_cell(record.config, cell))
    return GivenModel(model, pipeline=view)


def _mlflow_model(request: ModelRequest) -> GivenModel:
    """Return a logged model, loaded like any file."""
    from curvote.pipeline.config.yaml_document import parse_value
    from curvote.systems.utility.method.models import loading
    from curvote.systems.utility.request import GivenModel

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
        loaded = loading.load_skops(file, name)
    elif request.trusted == name:
        loaded = loading.load_model(file, trusted=file)
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
