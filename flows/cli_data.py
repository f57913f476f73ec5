"""The command `curvote data`: which files there are, get one, check them all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="data", help="List, fetch and verify data sets.", no_args_is_help=True
)

ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", help="Folder with pipelines.yaml (default: nearest)."),
]


@app.command("list")
def list_(project: ProjectOption = None) -> None:
    """List the data sets, their size and whether a file is here."""
    from curvote.datasets import raw, sources
    from curvote.datasets.registry import DATASETS

    root = _root(project)
    known = sources.catalogue(root)
    for name in DATASETS:
        if name not in known:
            typer.echo(f"{name:12} generated, any number of curves")
            continue
        source = known[name]
        path = raw.local(root, source) or "absent"
        typer.echo(f"{name:12} {source.rows} curves, {source.title}: {path}")


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A name that `data list` shows.")],
    project: ProjectOption = None,
) -> None:
    """Find or download one data set and check it."""
    from curvote import validate
    from curvote.datasets import raw, sources
    from curvote.datasets.registry import DATASETS

    root = _root(project)
    validate.one_of(DATASETS, name=name)
    if name not in sources.catalogue(root):
        typer.echo(f"{name} is generated: nothing to fetch.")
        return
    found = raw.locate(root, name)
    if found:
        typer.echo(f"{found.path}\nSHA-256 {found.sha256} (decompressed)")
        typer.echo(found.origin)


@app.command()
def verify(
    project: ProjectOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check every file that is here, without a download; exit 1 if one is wrong."""
    from curvote.datasets import raw

    rows = raw.verify(_root(project))
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        for row in rows:
            typer.echo("{source:12} {status:8} {file}: {message}".format(**row))
    if any(row["status"] in {"changed", "damaged"} for row in rows):
        raise typer.Exit(1)


def _root(project: Path | None) -> Path:
    from curvote.run.project import find_project

    return Path(find_project(project).root)
