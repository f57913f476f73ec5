"""The command `curvote data`: which files there are, get one, check and show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curvote.datasets.registry import DATASETS
from curvote.errors import Problem, UserError
from curvote.flows.output.terminal import Json, ProjectOption, say_json
from curvote.run.project import find_project

if TYPE_CHECKING:
    from curvote.datasets.raw import RawFile
    from curvote.datasets.sources import Source
    from curvote.reporting.card import Card

app = typer.Typer(
    name="data", help="List, fetch, verify and show data sets.", no_args_is_help=True
)

FileOption = Annotated[
    Path | None, typer.Option("--file", help="A copy that you have: it is taken over.")
]
AcceptOption = Annotated[
    str | None,
    typer.Option(
        "--accept-sha256", help="Accept the edition that is here, by its digest."
    ),
]


@app.command("list")
def list_(project: ProjectOption = None) -> None:
    """List the data sets and their files: here or absent, and their licence."""
    from curvote.datasets import sources

    root = find_project(project, starter=True).root
    known = sources.catalogue(root).values()
    for name in DATASETS:
        files = [source for source in known if source.dataset == name]
        if not files:
            typer.echo(f"{name}: no published file")
            continue
        typer.echo(f"{name}:")
        for source in files:
            _print_source(root, source)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A data set or file of `data list`.")],
    accept_sha256: AcceptOption = None,
    file: FileOption = None,
    project: ProjectOption = None,
) -> None:
    """Find or download the files of a data set, or take one you have, and check them.

    `--accept-sha256` accepts an edition that is not listed, if its content agrees.
    """
    from curvote.datasets import raw

    root = find_project(project, starter=True).root
    names = _files(root, name)
    if not names:
        typer.echo(f"{name} has no published file: nothing to fetch.")
    elif accept_sha256 or file:
        one = _single(name, names)
        if accept_sha256:
            found = raw.accept(root, one, accept_sha256, file)
        _print_found(raw.adopt(root, one, file) if file else found)
    else:
        _fetch_all(root, names)


@app.command()
def verify(project: ProjectOption = None, as_json: Json = False) -> None:
    """Check every file that is here, without a download; exit 1 if one is wrong."""
    from curvote.datasets import raw

    rows = raw.verify(find_project(project, starter=True).root)
    if as_json:
        say_json(rows)
    else:
        for row in rows:
            typer.echo("{source:20} {status:8} {file}: {message}".format(**row))
    if any(row["status"] in {"changed", "damaged"} for row in rows):
        raise typer.Exit(1)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A data set that `data list` shows.")],
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Print the card of a published data set whose files are here; draw its figure."""
    place = find_project(project, starter=True)
    made, figures = _card(place.root, name, place.reports / "data")
    paths = [str(path) for path in figures]
    if as_json:
        say_json(made.to_json() | {"figures": paths})
        return
    from curvote.flows.output.card_table import print_card

    print_card(made)
    typer.echo("\n".join(paths))


def _card(root: Path, name: str, folder: Path) -> tuple[Card, list[Path]]:
    from curvote.reporting import card, card_figure

    module = card.published(name, root)
    parameters = module.Parameters()
    files = _here(root, module.files(parameters))
    paths = {each: found.path for each, found in files.items()}
    facts = module.facts(parameters, paths)
    columns = module.clients(parameters, paths)
    made = card.card(name, parameters, facts, columns, files=files, root=root)
    return made, card_figure.draw(made, columns, folder)


def _here(root: Path, names: Sequence[str]) -> dict[str, RawFile]:
    """Return the checked files of these names; UserError names those not here."""
    from curvote.datasets import raw

    found = {name: raw.locate(root, name, download=False) for name in names}
    absent = [name for name, file in found.items() if file is None]
    if absent:
        raise UserError(
            f"not here: {', '.join(absent)}. `curvote data fetch NAME` gets a file, or"
            " says where to get it and where to put it."
        )
    return {name: file for name, file in found.items() if file}


def _files(root: Path, name: str) -> list[str]:
    """Return the files of a data set, or the one file of that name; none: empty."""
    from curvote import validate
    from curvote.datasets import lookup, sources

    known = sources.catalogue(root)
    validate.one_of([*DATASETS, *known], name=name)
    if name not in DATASETS:
        return [name]
    if all(source.dataset != name for source in known.values()):
        return []
    module = lookup.module(name)
    return list(module.files(module.Parameters()))


def _single(name: str, files: Sequence[str]) -> str:
    if len(files) > 1:
        raise UserError(
            f"{name} has several files; accept one by its name: {', '.join(files)}."
        )
    return files[0]


def _fetch_all(root: Path, names: Sequence[str]) -> None:
    """Get as many files as possible, then report together those that failed."""
    from curvote.datasets import raw

    problems: list[Problem] = []
    for name in names:
        try:
            found = raw.locate(root, name)
        except UserError as error:
            problems += error.problems
        else:
            _print_found(found)
    if problems:
        raise UserError.several(problems)


def _print_found(found: RawFile | None) -> None:
    if found:
        typer.echo(f"{found.path}\nSHA-256 {found.sha256} (decompressed)")
        typer.echo(found.origin)


def _print_source(root: Path, source: Source) -> None:
    from curvote.datasets import raw

    path = raw.local(root, source)
    state = "here" if path else "absent"
    typer.echo(f"  {source.name:20} {state:7} {source.rows} rows, {source.title}")
    typer.echo(f"  {'':28} {path or source.file}; licence: {source.licence}")
