"""Command `curvote utility`: agreement under noise, and what to send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from curvote.cli.terminal import (
    Json,
    ProjectOption,
    numbered_lines,
    print_json,
    relative_to_here,
)

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
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Say how often a classifier's answers survive noise, and what to send instead."""
    from curvote.cli.utility_model import ModelRequest, find_model
    from curvote.systems.utility.request import (
        ROWS,
        ROWS_AS_PUBLISHED,
        Options,
        analyse,
        check_terms,
        prepare,
    )

    terms = check_terms(
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
    options = Options(
        data=data,
        sensitive=sensitive,
        bounds=bounds,
        features=features,
        label=label,
        positive=positive,
        group=group,
        public=public,
        train=train,
        rows=rows or (ROWS_AS_PUBLISHED if as_published else ROWS),
        client_side=client_side,
    )
    from curvote.cli import utility_output as words

    say = numbered_lines(5 if as_published else 4)
    given_model = find_model(ModelRequest(model, project, trust_pickle, cell))
    request = prepare(given_model, options)
    say(f"{request.described.kind}, {request.setting.n} of {request.total} records")
    for note in request.notes:
        typer.echo(f"note: {note}", err=True)
    analysis = analyse(request, terms, say)
    if as_json:
        print_json(words.analysis_document(analysis))
        return
    words.print_analysis(analysis)
    from curvote.cli.utility_figure import draw_figure

    if figure is None:
        figure = Path(f"{model}-utility.png")
        if data is not None:
            figure = data.with_name(f"{data.stem}-utility.png")
    typer.echo(f"\nfigure: {relative_to_here(draw_figure(analysis, figure))}")
