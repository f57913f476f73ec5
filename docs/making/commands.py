"""The reference of the commands: read from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from curvote.cli.app import app

INTRODUCTION = """# Commands

This page is made from the program: `curvote COMMAND --help` says the same.
`curvote --version` says which curvote it is, and `curvote --install-completion` teaches
your shell the commands. Exit 0 is done, 1 failed, 2 something that you can mend, 3 that
a run waits for others.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the one page's name and text."""
    root = typer.main.get_command(app)
    known = list(leaves(root, "curvote"))
    rows = [
        f"| [`{name}`](#{_anchor(name)}) | {_first(command)} |"
        for name, command, _ in known
    ]
    table = "\n".join(["| command | what it does |", "|---|---|", *rows])
    parts = "\n".join(_part(*each) for each in known)
    yield "commands.md", f"{INTRODUCTION}\n{table}\n\n{parts}"


def leaves(group: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, command and context of all that can be typed."""
    for each, command in group.commands.items():
        full = f"{name} {each}"
        if hasattr(command, "commands"):
            yield from leaves(command, full)
        else:
            yield full, command, typer.Context(command, info_name=full)


def _part(name: str, command: Any, context: Any) -> str:
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    head = f"({_anchor(name)})=\n## `{name}`\n\n{_text(command.help)}\n"
    records = (one.get_help_record(context) for one in command.get_params(context))
    rows = [_row(*record) for record in records if record and "--help" not in record[0]]
    table = ["", "| argument or option | what it says |", "|---|---|", *rows, ""]
    return "\n".join([head, f"```text\n{usage}\n```", *(table if rows else [""])])


def _row(name: str, said: str) -> str:
    escaped = [part.replace("|", r"\|").strip() for part in (name, said)]
    return f"| `{escaped[0]}` | {_text(escaped[1])} |"


def _text(said: str) -> str:
    return said.replace("<", "&lt;").replace("[", r"\[")


def _first(command: Any) -> str:
    return _text(command.help.partition("\n\n")[0].replace("\n", " "))


def _anchor(name: str) -> str:
    return name.replace(" ", "-")
