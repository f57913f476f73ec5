"""The command `curvote predict`: predictions of a stored model for a table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from curvote.base.errors import UserError
from curvote.cli.terminal import Pipeline, ProjectOption

if TYPE_CHECKING:
    import pandas as pd

    from curvote.chain.axis import Cell
    from curvote.pipeline.config.project import Project
    from curvote.pipeline.store.records import RunRecord


COLUMN: Final = "prediction"
WRITERS: Final = (".csv", ".parquet")


def predict(
    pipeline: Pipeline,
    *,
    table: Annotated[
        Path, typer.Option("--table", help="CSV or Parquet: a row for each record.")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="File to write, with the class added.")
    ],
    cell: Annotated[
        list[str],
        typer.Option("--cell", help="Which of several models: epsilon=2."),
    ] = [],  # noqa: B006 - typer copies the default
    run_id: Annotated[
        str | None, typer.Option("--run", help="Another run: its id, or NAME~1.")
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Write the class of each record of a table, by the latest run's model."""
    from curvote.base import validate
    from curvote.pipeline.config.project import find_project
    from curvote.pipeline.store.records import completed_run

    validate.one_of(WRITERS, out=out.suffix.lower())
    if out.resolve() == table.resolve():
        raise UserError(f"--out names the table itself, {out}: name another file.")
    place = find_project(project)
    record = completed_run(place, pipeline, run_id)
    model = model_of_cell(place, record, choose_cell(place, record, cell))
    frame = _predict_table(table, model)
    form = getattr(model, "form", None)
    try:
        if out.suffix.lower() == ".parquet":
            frame.to_parquet(out, index=False)
        elif form is None:
            frame.to_csv(out, index=False)
        else:  # written as the source is, so that it reads as the source does
            how = form.writing
            csv_options = {"sep": how.separator, "decimal": how.decimal}
            frame.to_csv(out, index=False, encoding=how.encoding, **csv_options)
    except UnicodeEncodeError:
        raise UserError(
            f"{out}: some letters of {table} have no place in {how.encoding}, as the"
            " source is written; write to a .parquet file."
        ) from None
    except OSError as error:
        raise UserError(f"{out}: {error.strerror or error}.") from None
    typer.echo(f"{len(frame)} records, column {COLUMN}: {out}")


def choose_cell(project: Project, record: RunRecord, chosen: list[str]) -> Cell:
    """Return the cell of the one model that is meant; UserError: not one."""
    from curvote.pipeline.run.results import final_views

    cells = [view.cell for view in final_views(project, record)]
    matches = [at for at in cells if all(_matches_cell(at, text) for text in chosen)]
    if len(matches) != 1:
        listed = "; ".join(f'"{", ".join(_cell_values(cell))}"' for cell in cells)
        raise UserError(
            f"{record.pipeline} has {len(matches)} models"
            f"{' with ' + ', '.join(chosen) if chosen else ''}; name one by --cell:"
            f" {listed}."
        )
    return matches[0]


def model_of_cell(project: Project, record: RunRecord, cell: Cell) -> Any:
    """Return the model of a cell, any object with ``predict``; UserError: none."""
    from curvote.pipeline.run.results import final_model

    model = final_model(project, record, cell)
    if model is None:
        raise UserError(f"{record.pipeline} keeps no model, so it cannot predict.")
    return model


def _cell_values(cell: Cell) -> list[str]:
    """Return a cell's values in the form that `--cell` takes, in as few digits."""
    values = []
    for axis, value in cell.to_json().items():
        short = f"{value:g}" if isinstance(value, float) else str(value)
        exact = not isinstance(value, float) or float(short) == value
        values.append(f"{axis}={short if exact else repr(value)}")
    return values


def _matches_cell(cell: Cell, text: str) -> bool:
    """Return whether a cell has the values that one `--cell` names."""
    rest = f", {text.strip()},"
    for word in sorted(_cell_values(cell), key=len, reverse=True):
        rest = rest.replace(f", {word},", ",", 1)
    for part in filter(None, rest.strip(", ").split(",")):
        axis, _, wanted = part.partition("=")
        value, wanted = cell[axis.strip()], wanted.strip()
        try:
            if value != wanted and float(wanted) != value:
                return False
        except ValueError:
            return False
    return True


def _predict_table(path: Path, model: Any) -> pd.DataFrame:
    """Return the table with its predictions; some may be empty.

    What is empty and why is said. UserError: no row can be used, or a column is not
    there; of models that know no form of raw records, every problem, with lines.
    """
    import pandas as pd

    from curvote.base import table_file, warning_filters

    form = getattr(model, "form", None)
    frame = form.file(path) if form else table_file.read_table(path)
    problems = table_file.Violations(path)
    if not len(frame):
        problems.note("it has no row")
    if COLUMN in frame:
        problems.note(f"it has a column {COLUMN!r} already")
    raw = form and ({*form.raw} <= {*frame} or not {*model.columns} <= {*frame})
    wanted = form.raw if form and raw else model.columns
    problems.note_columns([*map(str, frame)], wanted)
    inputs = frame
    if not raw:  # the numbers of the model itself
        present = [name for name in wanted if list(frame).count(name) == 1]
        values = table_file.read_numbers(frame, present, problems)
        inputs = pd.DataFrame(values, columns=present)
    problems.check()
    with warning_filters.FILTERS, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UserWarning)
        answers = model.predict(inputs)
    for warning_heard in heard:
        typer.echo(f"{path}: {warning_heard.message}", err=True)
    return frame.assign(**{COLUMN: answers})
