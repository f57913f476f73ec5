"""Harness process that runs the installed command and reports all effects.

Each call is the command's own entry, with a state folder of its own; what the operating
system is asked for is replaced or written down. Requests and answers are lines of JSON.
"""

import io
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any
from unittest import mock

import typer.main

from curvote.checks.child import run_in_child
from curvote.checks.word_checks import Tape, play_tape

COMMAND = "curvote"
Json = dict[str, Any]


def run_command(entry: Any, request: Json) -> Json:
    """Return exit code, output and entropy requests of one call."""
    words, complaints = io.StringIO(), io.StringIO()
    tape = Tape(request["seed"], request["word"])
    state = {"XDG_STATE_HOME": f"{request['folder']}/state", "COLUMNS": "200"}
    with (
        mock.patch.dict(os.environ, state),
        mock.patch.object(sys, "argv", [COMMAND, *request["argv"]]),
        redirect_stdout(words),
        redirect_stderr(complaints),
        play_tape(tape, world=request["world"]),
    ):
        code = 0
        try:
            entry()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        except Exception:  # noqa: BLE001 - a traceback is something that can be seen
            traceback.print_exc()
            code = 1
    return {
        "exit": code,
        "out": words.getvalue(),
        "err": complaints.getvalue(),
        "asked": [answer.hex() for answer in tape.answers],
    }


def serve(run: Callable[[Any, Json], Json] = run_command) -> None:
    """Answer requests by ``run`` until there are no more."""
    (command,) = entry_points(group="console_scripts", name=COMMAND)
    entry, out = command.load(), os.dup(1)
    # The tree of all commands is the same at each call, and half of its time.
    typer.main.get_command = cache(typer.main.get_command)
    # Whatever else writes there must not stand between the answers.
    os.dup2(2, 1)
    with os.fdopen(out, "w", encoding="utf-8") as answers:
        for line in sys.stdin:
            request = json.loads(line)
            call = partial(run, entry, request)
            answer = run_in_child(call) if request["child"] else call()
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve()
