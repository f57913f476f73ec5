"""Lines of runs and of `curvote serve`, as text or JSON, through one pipe.

The runs of `serve` are processes of their own, whose output is full of Prefect's. What
they say themselves goes through one pipe to `serve`, which prints it.
"""

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

from curvote.base.errors import UserError

_FORMAT = "CURVOTE_LOG_FORMAT"
_PIPE = "CURVOTE_LINES"
# Prefect sets it for a run that a worker starts, whose output others may gather.
_WORKER_RUN = "PREFECT__FLOW_RUN_ID"
# What every line of JSON has, null where it does not apply.
LINE_FACTS = ("run", "pipeline", "stage", "cell", "replicates")
_shared_facts: dict[str, str] = {}


def set_format(format_name: str) -> None:
    """Set the format of lines, ``text`` or ``json``, for children too."""
    os.environ[_FORMAT] = format_name


def is_json() -> bool:
    """Return whether lines are JSON."""
    return os.environ.get(_FORMAT) == "json"


def is_for_program() -> bool:
    """Return whether lines are read by a program instead of a person."""
    return is_json() or _PIPE in os.environ or _WORKER_RUN in os.environ


def write_line(text: str, level: str = "info", **facts: Any) -> None:
    """Write one line to standard error, or to the pipe of `curvote serve`.

    ``facts`` are those of FACTS and others; those of `shared_facts` are added.
    """
    entry = make_line(text, level, **facts)
    pipe = os.environ.get(_PIPE)
    if pipe is None:
        print_line(entry, sys.stderr)
    else:
        send_message(Path(pipe), {"line": entry})


def make_line(text: str, level: str = "info", **facts: Any) -> dict[str, Any]:
    """Return a line with its time and all shared facts."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    named: dict[str, Any] = {name: _shared_facts.get(name) for name in LINE_FACTS}
    return {"time": now, "level": level} | named | facts | {"message": text}


def print_line(entry: dict[str, Any], stream: TextIO) -> None:
    """Print one line in the chosen format."""
    text = json.dumps(entry) if is_json() else entry["message"]
    # With its end in one piece: several threads may write at once.
    print(f"{text}\n", end="", file=stream, flush=True)


class LineLog(RotatingFileHandler):
    """A rotating log file of lines, 4 MiB, for its owner only."""

    def __init__(self, path: Path) -> None:
        path.touch(0o600)
        super().__init__(path, maxBytes=1 << 20, backupCount=3, encoding="utf-8")

    def write_entry(self, entry: dict[str, Any]) -> None:
        """Write each line of an entry with its time."""
        for text_line in entry["message"].splitlines():
            text = f"{entry['time']} {entry['level']:7} {text_line}"
            self.handle(logging.makeLogRecord({"msg": text}))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - theirs
        """Do nothing: a full disk under the log ends no schedule."""


@contextmanager
def shared_facts(**facts: str) -> Iterator[None]:
    """Add facts, such as the pipeline, to all lines written meanwhile."""
    before = dict(_shared_facts)
    _shared_facts.update(facts)
    try:
        yield
    finally:
        _shared_facts.clear()
        _shared_facts.update(before)


def send_message(pipe: Path, message: dict[str, Any]) -> None:
    """Send a message through the pipe; a missing reader is no error.

    Nor is a reader who is slow: what is said must never hold up a run.
    """
    text = f"{json.dumps(message)}\n".encode()
    with contextlib.suppress(OSError):
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(descriptor, text)
        finally:
            os.close(descriptor)


class LinePipe:
    """The reading end of a named pipe, to which children write.

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
        """Yield the received messages; lines that are no JSON object are left out."""
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
        """Return the environment variable that names the pipe to a child."""
        return {_PIPE: str(self.path)}

    def close(self) -> None:
        """Remove the pipe."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)


def ask_consent(question: str, yes: bool) -> None:
    """Ask on a terminal; anything but yes is a UserError.

    Nothing is asked where ``yes`` was said already, or where no terminal is: there the
    caps in the ledger are the consent. The question goes to standard error, as standard
    output may be read by a program.
    """
    import typer

    if yes or not sys.stdin.isatty():
        return
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UserError("not agreed to: nothing was drawn, nothing changed.")
