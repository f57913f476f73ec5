"""The command `curvote data`: list, fetch, verify and show the files of data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curvote.base.errors import Problem, UserError
from curvote.cli.terminal import Json, ProjectOption, print_json, require_package
from curvote.data.registry import DATASETS
from curvote.pipeline.config.project import find_project

if TYPE_CHECKING:
    from curvote.data.raw_files import RawFile


app = typer.Typer(
    name="data", help="List, download, check and show data sets.", no_args_is_help=True
)


@app.command("list")
def list_(project: ProjectOption = None) -> None:
    """List the data sets and their files: which are here, under which licence."""
    from curvote.data import raw_files

    root = find_project(project, starter=True).root
    catalogue = raw_files.catalogue(root).values()
    for name in DATASETS:
        files = [source for source in catalogue if source.dataset == name]
        if not files:
            typer.echo(f"{name}: no published file")
            continue
        typer.echo(f"{name}:")
        for source in files:
            path = raw_files.find_local(root, source)
            state, place = ("here", path) if path else ("absent", source.file)
            numbers = f"{source.rows} rows, {source.title}"
            typer.echo(f"  {source.name:20} {state:7} {numbers}")
            typer.echo(f"  {'':28} {place}; licence: {source.licence}")


@app.command()
def fetch(
    name: Annotated[
        str, typer.Argument(help="A data set, or a file, that `data list` names.")
    ],
    accept_sha256: Annotated[
        str | None,
        typer.Option(
            "--accept-sha256", help="Accept your edition of the file, by its SHA-256."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Take this copy instead of a download."),
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Download the files of a data set, or take a copy that you have, and check them.

    `--accept-sha256` accepts an unknown edition whose content agrees.
    """
    from curvote.base import validate
    from curvote.data import lookup, raw_files

    root = find_project(project, starter=True).root
    catalogue, names = raw_files.catalogue(root), [name]
    validate.one_of([*DATASETS, *catalogue], name=name)
    if name in DATASETS:
        dataset = lookup.find_dataset(name)
        published = any(source.dataset == name for source in catalogue.values())
        names = list(dataset.files(dataset.Parameters())) if published else []
    if not names:
        typer.echo(f"{name} has no published file: nothing to fetch.")
    elif accept_sha256 or file:
        if len(names) > 1:
            raise UserError(
                f"{name} has several files; accept one by its name: {', '.join(names)}."
            )
        (file_name,) = names
        if accept_sha256:
            accepted = raw_files.accept_edition(root, file_name, accept_sha256, file)
        _print_file(raw_files.adopt(root, file_name, file) if file else accepted)
    else:  # as many as possible, then the reasons of those that failed
        problems: list[Problem] = []
        for file_name in names:
            try:
                raw_file = raw_files.locate(root, file_name)
            except UserError as error:
                problems += error.problems
            else:
                _print_file(raw_file)
        if problems:
            raise UserError.several(problems)


@app.command()
def verify(project: ProjectOption = None, as_json: Json = False) -> None:
    """Check the files that are here and download nothing; exit 1 if one is wrong."""
    from curvote.data import raw_files

    rows = raw_files.verify_all(find_project(project, starter=True).root)
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            typer.echo("{source:20} {status:8} {file}: {message}".format(**row))
    if any(row["status"] in {"changed", "damaged"} for row in rows):
        raise typer.Exit(1)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A data set that `data list` names.")],
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Print what a data set holds, and draw it; its files must be here."""
    require_package("scipy")
    from curvote.data import raw_files
    from curvote.report import card

    place = find_project(project, starter=True)
    root = place.root
    dataset = card.published_dataset(name, root)
    parameters = dataset.Parameters()
    names = dataset.files(parameters)
    located = {n: raw_files.locate(root, n, download=False) for n in names}
    absent = [file_name for file_name, file in located.items() if file is None]
    if absent:
        raise UserError(
            f"not here: {', '.join(absent)}. `curvote data fetch NAME` gets a file, or"
            " says where to get it and where to put it."
        )
    files = {file_name: file for file_name, file in located.items() if file}
    paths = {file_name: raw_file.path for file_name, raw_file in files.items()}
    facts = dataset.facts(parameters, paths)
    columns = dataset.clients(parameters, paths)
    data_card = card.make_card(name, parameters, facts, columns, files=files, root=root)
    figures = [*map(str, card.draw_card(data_card, columns, place.reports / "data"))]
    if as_json:
        print_json(data_card.to_json() | {"figures": figures})
        return
    from curvote.cli.tables import print_card

    print_card(data_card)
    typer.echo("\n".join(figures))


def _print_file(raw_file: RawFile | None) -> None:
    if raw_file:
        typer.echo(f"{raw_file.path}\nSHA-256 {raw_file.sha256} (decompressed)")
        typer.echo(raw_file.origin)
