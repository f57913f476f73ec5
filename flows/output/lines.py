"""What a run and `curvote serve` say while they work: plain lines, or JSON ones.

The runs of `serve` are processes of their own, whose output is full of Prefect's. What
they say themselves goes through one pipe to `serve`, which prints it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TextIO

from curvote.errors import UserError

FORMATS = ("text", "json")
_FORMAT = "CURVOTE_LOG_FORMAT"
_PIPE = "CURVOTE_LINES"
# What every line of JSON has, null where it does not apply.
FACTS = ("run", "pipeline", "stage", "cell", "replicates")
_known: dict[str, str] = {}


def use(form: str) -> None:
    """Write lines as ``text`` or ``json`` from now on, in children too."""
    os.environ[_FORMAT] = form


def is_json() -> bool:
    """Say whether lines are JSON."""
    return os.environ.get(_FORMAT) == "json"


def is_elsewhere() -> bool:
    """Say whether lines are for a program, not for whoever sits at a terminal."""
    return is_json() or _PIPE in os.environ


def say(text: str, level: str = "info", **facts: Any) -> None:
    """Say one line on standard error, or through the pipe of `curvote serve`.

    ``facts`` are those of FACTS and others; those of `about` are added.
    """
    made = line(text, level, **facts)
    pipe = os.environ.get(_PIPE)
    if pipe is None:
        show(made, sys.stderr)
    else:
        send(Path(pipe), {"line": made})


def line(text: str, level: str = "info", **facts: Any) -> dict[str, Any]:
    """Return a line with the time and all that is known of it."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    named: dict[str, Any] = {name: _known.get(name) for name in FACTS}
    return {"time": now, "level": level} | named | facts | {"message": text}


def show(made: dict[str, Any], stream: TextIO) -> None:
    """Print one line in the form that was chosen."""
    text = json.dumps(made) if is_json() else made["message"]
    # With its end in one piece: several threads may write at once.
    print(f"{text}\n", end="", file=stream, flush=True)


class Kept(RotatingFileHandler):
    """A file that keeps lines with their times, 4 MiB of them, for its owner only."""

    def __init__(self, path: Path) -> None:
        path.touch(0o600)
        super().__init__(path, maxBytes=1 << 20, backupCount=3, encoding="utf-8")

    def keep(self, made: dict[str, Any]) -> None:
        """Write what was said, each of its lines with the time."""
        for said in made["message"].splitlines():
            text = f"{made['time']} {made['level']:7} {said}"
            self.handle(logging.makeLogRecord({"msg": text}))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - theirs
        """Do nothing: a full disk under the log ends no schedule."""


@contextmanager
def about(**facts: str) -> Iterator[None]:
    """Add facts, such as the pipeline, to all that is said meanwhile."""
    before = dict(_known)
    _known.update(facts)
    try:
        yield
    finally:
        _known.clear()
        _known.update(before)


def send(pipe: Path, message: dict[str, Any]) -> None:
    """Hand a message to whoever reads the pipe; nobody reading it is no error.

    Nor is a reader who is slow: what is said must never hold up a run.
    """
    text = f"{json.dumps(message)}\n".encode()
    with contextlib.suppress(OSError):
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(descriptor, text)
        finally:
            os.close(descriptor)


class Pipe:
    """The reading end: a named pipe, made anew, that children may write to.

    Short messages of several writers do not mix: the kernel writes each as a whole.
    UserError: the file system knows no pipes.
    """

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        try:
            os.mkfifo(path, 0o600)
        except OSError as error:
            raise UserError(
                f"{path} cannot be made ({error.strerror}): this file system knows no"
                " named pipes; put the folder data on a local disk."
            ) from error
        self.path = path
        # Open for both: there is no end of file while no child is there.
        self.descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._rest = b""

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield what has come; a line that is no JSON object is left out."""
        with contextlib.suppress(BlockingIOError):
            while some := os.read(self.descriptor, 65_536):
                self._rest += some
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict):
                    yield message

    def variables(self) -> dict[str, str]:
        """Return what tells a child where the pipe is."""
        return {_PIPE: str(self.path)}

    def close(self) -> None:
        """Remove the pipe."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)
