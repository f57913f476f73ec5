"""A second copy of what was released: append-only, beside the ledger.

One line for each reservation and settlement, each with the head of the ledger's chain
at that moment. The ledger writes first; what a killed process left unwritten here is
added by the next one. A ledger that lacks the head of a line is not the one that wrote
it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from curvote.client.ledger import Ledger
from curvote.durable import sync_folder
from curvote.errors import UserError
from curvote.run.project import Project


def path_of(project: Project) -> Path:
    """Return where the copy is."""
    return project.state / "releases.jsonl"


def lines(project: Project) -> list[dict[str, Any]]:
    """Return the lines that can be read, oldest first; none where there is no copy."""
    path = path_of(project)
    with _errors(path):
        return list(_read(path.read_bytes() if path.exists() else b""))


def catch_up(project: Project, ledger: Ledger) -> int:
    """Add what the ledger knows and the copy does not; return how many lines.

    They are durable on return. What is there already is never changed. A file that
    cannot be written is a UserError.
    """
    path = path_of(project)
    with _errors(path):
        return _append(path, ledger)


def _append(path: Path, ledger: Ledger) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "r+b", buffering=0) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        there = stream.readall()
        known = {line["head"] for line in _read(there)}
        new = [asdict(m) for m in ledger.movements() if m.head not in known]
        if not new:
            return 0
        text = "".join(json.dumps(line) + "\n" for line in new)
        torn = there and not there.endswith(b"\n")  # the last one to write was killed
        stream.write(("\n" * bool(torn) + text).encode())
        os.fsync(handle)
    sync_folder(path.parent)
    return len(new)


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{path}, the second copy of what was released:"
            f" {error.strerror or error}. Nothing is released without it."
        ) from error


def _read(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the whole lines; a killed process may have left a torn one."""
    for text in data.split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and all(
            isinstance(line.get(name), str) for name in ("release", "head")
        ):
            yield line
