"""Several commands in one process of a copied house; run as a script there.

Reads a JSON list of steps from standard input: a list of words is a command line, a
text a script, a mapping {file: [old, new]} an edit, {pattern: "alter"} changes a byte
of files. Prints what each command and script gave, as JSON.
"""

import contextlib
import io
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def command(words: list[str]) -> dict[str, Any]:
    """Return exit code, output and errors of one command line."""
    from curvote.cli import app

    sys.argv = ["curvote", *words]
    return told(app.main)


def script(text: str) -> dict[str, Any]:
    """Return the same of a script, which sees no names but its own."""
    return told(lambda: exec(text, {"__name__": "__main__"}))


def told(work: Callable[[], object]) -> dict[str, Any]:
    """Do work; return exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            work()
        except SystemExit as end:
            code = end.code or 0
        except Exception:  # noqa: BLE001 - the other commands are told, too
            code = traceback.format_exc()
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def edit(changes: dict[str, Any]) -> None:
    """Replace a text in files, or alter a byte in the middle of them."""
    for file, change in changes.items():
        if change == "alter":
            alter(file)
            continue
        (old, new), path = change, Path(file)
        text = path.read_text()
        if old not in text:
            raise SystemExit(f"{file} does not hold {old!r}")
        path.write_text(text.replace(old, new))


def alter(pattern: str) -> None:
    """Change one byte of each file that matches."""
    found = list(Path.cwd().glob(pattern))
    if not found:
        raise SystemExit(f"no file is {pattern}")
    for path in found:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


def main() -> None:
    """Do all steps, in order."""
    found = []
    for step in json.load(sys.stdin):
        if isinstance(step, dict):
            edit(step)
        elif isinstance(step, str):
            found.append(script(step))
        else:
            found.append(command(step))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
