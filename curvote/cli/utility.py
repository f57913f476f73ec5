"""Command `curvote utility`: agreement under noise, and what to send.

MODEL is a file, a logged model of MLflow, or a pipeline's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
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
        help="A .skops file, MLflow's runs:/... or models:/..., or a pipeline's name.",
    ),
]


def utility(  # noqa: PLR0917 - the options of a command are its arguments
    model: Model,
    data: Annotated[
        Path | None, typer.Option(help="CSV or Parquet with records to noise.")
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="Features to be noised: age,bmi.")
    ] = None,
    bounds: Annotated[
        list[str], typer.Option(help="Bounds of a feature: age=0:100.")
    ] = [],  # noqa: B006 - typer copies the default
    epsilon: Annotated[
        list[float], typer.Option(help="Total epsilon of a record; repeatable.")
    ] = [1, 2, 4, 8],  # noqa: B006 - typer copies the default
    target: Annotated[
        float | None, typer.Option(help="Agreement to reach, such as 0.8.")
    ] = None,
    metric: Annotated[
        str, typer.Option(help="What --target means: agreement or accuracy.")
    ] = "agreement",
    share: Annotated[
        float | None,
        typer.Option(help="Share of records that must reach it (default: the mean)."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column with the true class.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Value of the label that is the second class.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Also print figures for each value of this column."),
    ] = None,
    public: Annotated[
        Path | None, typer.Option(help="Public records, to read noise better.")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(help="Training data, for models without or with noised features."),
    ] = None,
    mechanism: Annotated[
        list[str], typer.Option(help="Try only this mechanism; repeatable.")
    ] = [],  # noqa: B006 - typer copies the default
    read: Annotated[
        list[str],
        typer.Option(help="Only raw, decode (--public) or retrain (--train)."),
    ] = [],  # noqa: B006 - typer copies the default
    features: Annotated[
        str | None, typer.Option(help="Names of the model's columns, if it has none.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many records (default: up to 1000).")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of intervals.")] = 0.95,
    draws: Annotated[
        int, typer.Option(help="Random draws a record, where no exact figure is known.")
    ] = 2000,
    delta: Annotated[float, typer.Option(help="Delta, for mechanism gaussian.")] = 0.0,
    client_side: Annotated[
        bool, typer.Option("--client-side", help="Clients can run the model.")
    ] = False,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Add the published figure.")
    ] = False,
    trust_pickle: Annotated[
        str | None,
        typer.Option(help="Load MODEL though a pickle: name it again. Runs its code."),
    ] = None,
    cell: Annotated[
        list[str], typer.Option(help="Which of several models: epsilon=2.")
    ] = [],  # noqa: B006 - typer copies the default
    figure: Annotated[
        Path | None, typer.Option(help="PNG to draw (default: beside --data).")
    ] = None,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Say how often a model's answers survive noise, and what is best to send."""
    from curvote.cli import utility_output as output
    from curvote.systems.utility import request as requests

    options = requests.Options(
        data=data,
        sensitive=sensitive,
        bounds=bounds,
        epsilon=epsilon,
        target=target,
        metric=metric,
        share=share,
        label=label,
        positive=positive,
        group=group,
        public=public,
        train=train,
        mechanism=mechanism,
        read=read,
        features=features,
        rows=rows,
        confidence=confidence,
        draws=draws,
        delta=delta,
        client_side=client_side,
        as_published=as_published,
    )
    say = terminal.numbered_lines(5 if as_published else 4)
    given_model = find_model(model, project, trust_pickle, cell)
    request = requests.prepare(given_model, options)
    say(f"{request.described.kind}, {request.setting.n} of {request.total} records")
    for note in request.notes:
        typer.echo(f"note: {note}", err=True)
    analysis = requests.analyse(request, say)
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


def find_model(
    name: str, project: Path | None, trusted: str | None, cell: Sequence[str]
) -> GivenModel:
    """Return the model that is called ``name``; ``trusted`` is the one trusted pickle.

    UserError: none, or none that loads safely.
    """
    from curvote.systems.utility.method.models import loading
    from curvote.systems.utility.model import RecordClassifier
    from curvote.systems.utility.request import GivenModel

    path = Path(name)
    if name.startswith(URIS):
        given_model = _mlflow_model(name, project, trusted)
    elif path.suffix.lower() in loading.SUFFIXES or path.is_file():
        loaded = loading.load_model(path, trusted=Path(trusted) if trusted else None)
        given_model = GivenModel(loaded.model, loaded.notes)
    elif trusted:
        raise UserError("--trust-pickle is for a model in a file.")
    else:
        given_model = _pipeline_model(name, project, cell)
    model = given_model.model
    if isinstance(model, RecordClassifier):  # of all columns; here those that it reads
        return replace(given_model, model=model.model, names=tuple(model.read))
    return given_model


def _pipeline_model(
    name: str, folder: Path | None, chosen: Sequence[str]
) -> GivenModel:
    from curvote.cli.commands import predict
    from curvote.papers.registry import file_of
    from curvote.pipeline.config.settings import part_of_cell
    from curvote.pipeline.run.results import RunView
    from curvote.pipeline.store.records import completed_run
    from curvote.systems.utility.method.models.loading import SUFFIXES
    from curvote.systems.utility.request import GivenModel

    project = find_project(folder)
    names = file_of(project, name).names()
    if name not in names:
        raise UserError(
            f"{name} is no file of a model ({', '.join(SUFFIXES)}), no URI of"
            f" MLflow's ({', '.join(URIS)}) and no pipeline."
            f"{suggest_closest(name, names)}"
        )
    record = completed_run(project, name)
    cell = predict.choose_cell(project, record, list(chosen))
    model = predict.model_of_cell(project, record, cell)
    view = RunView(project, record, cell, part_of_cell(record.config, cell))
    return GivenModel(model, pipeline=view)


def _mlflow_model(name: str, project: Path | None, trusted: str | None) -> GivenModel:
    from curvote.pipeline.config.yaml_document import parse_value
    from curvote.systems.utility.method.models import loading
    from curvote.systems.utility.request import GivenModel

    folder = _fetch_logged(name, project)
    try:
        metadata = parse_value((folder / "MLmodel").read_text(encoding="utf-8"))
        flavor = metadata["flavors"]["sklearn"]
        file = folder / str(flavor["pickled_model"])
    except (OSError, KeyError, TypeError, UserError):
        raise UserError(
            f"{name} is no scikit-learn model of MLflow's; log it by"
            " mlflow.sklearn.log_model(..., serialization_format='skops')."
        ) from None
    form = str(flavor.get("serialization_format"))
    if form == "skops":
        loaded = loading.load_skops(file, name)
    elif trusted == name:
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


def _fetch_logged(name: str, project: Path | None) -> Path:
    """Return the folder of a logged model, of the project's store or the user's."""
    if project or "MLFLOW_TRACKING_URI" not in os.environ:
        environment.prepare_environment(find_project(project).root)
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
            return Path(download_artifacts(artifact_uri=name))
    except (MlflowException, OSError) as error:
        words = str(error).strip().splitlines()[0].rstrip(".")
        raise UserError(f"{name} cannot be had from MLflow: {words}.") from None
