"""The table of all options and arguments: read from the command line itself.

`python -m docs.making.options` writes the page; tests/test_options.py compares it.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import typer

from curvote.cli.app import app
from docs.making.commands import leaves

PAGE = Path(__file__).parents[1] / "options.md"
INTRODUCTION = """# Options

All options and arguments, each with the commands that take it. Clients, ledgers and
the intake call the same thing by the same name; a former name is still read, with a
line about it on standard error. [Commands](reference/commands.md) lists each command
with its own. Both pages are made from the program, this one by
`python -m docs.making.options`.

| option or argument | of `curvote` ... | what it says | former name |
|---|---|---|---|
"""


def text() -> str:
    """Return the page: a row for each name and what it says, with its commands."""
    rows: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for full, command, _ in leaves(typer.main.get_command(app), ""):
        former = {new: old for old, new in getattr(command, "former", {}).items()}
        for parameter in command.params:
            if not getattr(parameter, "hidden", False):
                name = _name(parameter)
                row = name, _cell(parameter.help or ""), former.get(name, "")
                rows[row].append(f"`{full.strip()}`")
    lines = [
        f"| `{name}` | {', '.join(commands)} | {help_} | {old and f'`{old}`'} |"
        for (name, help_, old), commands in sorted(rows.items())
    ]
    return INTRODUCTION + "\n".join(lines) + "\n"


def _name(parameter: Any) -> str:
    """Return an option's longest name, or an argument's in capitals."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name).upper()


def _cell(words: str) -> str:
    return words.replace("|", r"\|").replace("<", "&lt;").replace("[", r"\[")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
