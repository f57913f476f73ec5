"""The commands `curvote client`: answers to a server's tasks, without a project."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer

from curvote.errors import UserError
from curvote.flows.output.terminal import Json, print_json

BROWSER_PAGE: Final = "browser.html"
_To = Annotated[Path, typer.Argument(help="The file to write; it must not be there.")]


def page(*, to: _To = Path("curvote-client.html"), as_json: Json = False) -> None:
    """Write the page with which people answer a task in their browser."""
    text = (files("curvote.client") / BROWSER_PAGE).read_bytes()
    try:
        with to.open("xb") as file:
            file.write(text)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(
            f"{to} cannot be written: {why}. Name another file:"
            " `curvote client page FILE`."
        ) from None
    digest = hashlib.sha256(text).hexdigest()
    if as_json:
        print_json({"page": str(to), "sha256": digest})
        return
    typer.echo(f"page     {to}\nSHA-256  {digest}")
