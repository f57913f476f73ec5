"""The command `curvote predict`: a table goes in, with one column more it comes out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from curvote.errors import UserError
from curvote.flows.output.terminal import Pipeline, ProjectOption

if TYPE_CHECKING:
    import pandas as pd

    from curvote.chain.axis import Cell
    from curvote.run.history import RunRecord
    from curvote.run.project import Project

COLUMN: Final = "prediction"
WRITERS: Final = (".csv", ".parquet")


def predict(
    pipeline: Pipeline,
    *,
    table: Annotated[
        Path, typer.Option("--table", help="CSV or Parquet: one row a record.")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="CSV or Parquet to write: a column more.")
    ],
    cell: Annotated[
        list[str],
        typer.Option("--cell", help="Which model, where there are several: epsilon=2."),
    ] = [],  # noqa: B006 - typer copies the default
    run_id: Annotated[str | None, typer.Option("--run", help="A run's id.")] = None,
    project: ProjectOption = None,
) -> None:
    """Say the class of each record of a table, by the model of the latest run."""
    from curvote import validate
    from curvote.run.history import completed
    from curvote.run.project import find_project

    validate.one_of(WRITERS, out=out.suffix.lower())
    if out.resolve() == table.resolve():
        raise UserError(f"{out} is the table itself; write to another file.")
    place = find_project(project)
    record = completed(place, pipeline, run_id)
    model = model_of(place, record, chosen_cell(place, record, cell))
    frame = _said(table, model)
    writing = frame.to_csv if out.suffix.lower() == ".csv" else frame.to_parquet
    try:
        writing(out, index=False)
    except OSError as error:
        raise UserError(f"{out}: {error.strerror or error}.") from None
    typer.echo(f"{len(frame)} records, column {COLUMN}: {out}")


def chosen_cell(project: Project, record: RunRecord, chosen: list[str]) -> Cell:
    """Return the cell of the one model that is meant; UserError: several, or none."""
    from curvote.run.results import views

    cells = [view.cell for view in views(project, record)]
    left = [each for each in cells if set(chosen) <= {*_words(each)}]
    if len(left) != 1:
        known = "; ".join(", ".join(_words(each)) for each in cells)
        raise UserError(
            f"{record.pipeline} has {len(left)} models"
            f"{' with ' + ', '.join(chosen) if chosen else ''}; name one by --cell:"
            f" {known}."
        )
    return left[0]


def model_of(project: Project, record: RunRecord, cell: Cell) -> Any:
    """Return the model of a cell, any object with ``predict``; UserError: none."""
    from curvote.run.results import final_model

    model = final_model(project, record, cell)
    if model is None:
        raise UserError(f"{record.pipeline} keeps no model that could predict.")
    return model


def _words(cell: Cell) -> list[str]:
    """Return the values of a cell as `--cell` takes them."""
    pairs = cell.to_json().items()
    return [
        f"{axis}={v:g}" if isinstance(v, float) else f"{axis}={v}" for axis, v in pairs
    ]


def _said(path: Path, model: Any) -> pd.DataFrame:
    """Return the table with its predictions; UserError: every problem, with lines."""
    import pandas as pd

    from curvote import table_file

    frame, problems = table_file.read(path), table_file.Problems(path)
    if not len(frame):
        problems.add("it has no row")
    if COLUMN in frame:
        problems.add(f"it has a column {COLUMN!r} already")
    texts = getattr(model, "categories", None) or {}
    coded = {table_file.category(x, each) for x in texts for each in texts[x]}
    wanted = [name for name in model.columns if name not in coded]
    table_file.missing(frame, [*wanted, *texts], problems)
    there = [name for name in wanted if list(frame).count(name) == 1]
    told = pd.DataFrame(table_file.numbers(frame, there, problems), columns=there)
    for name in (each for each in texts if list(frame).count(each) == 1):
        columns = [table_file.category(name, each) for each in texts[name]]
        told[columns] = table_file.choices(frame, name, texts[name], problems)
    problems.check()
    return frame.assign(**{COLUMN: model.predict(told)})
