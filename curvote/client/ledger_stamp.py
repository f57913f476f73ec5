"""File format of a ledger: tables, upgrades, and stamps of earlier checks.

Reading every page of a ledger of ten million clients takes seconds. A stamp beside it
says what was checked: the file's number, size and times, and the chain's newest link.
While these are the same, and no journal waits, the pages are not read again.

What that does not cover: a disk that gives other bytes than were written, without any
write, is noticed when SQLite meets the page, by `curvote ledger check`, or at the next
opening after `STAMP_DAYS`; so is whoever sets the clock back, writes, and sets it right
again. Whether the ledger is older than what is told of it, no stamp decides.

Before a release is reserved, all entries are added up again, as what a client has spent
is read from a running total. A second stamp says that this was done, and that nobody
but who did it has written since.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from curvote.client import ledger_chain

SMALLEST_STAMPED: Final = (
    16 * 2**20
)  # below, checking takes less time than a stamp is worth
STAMP_DAYS: Final = 7
_DAY: Final = 86_400
# Below, entries are added up in less than a tenth of a second.
SMALLEST_SUMS: Final = 2**20
# A write this soon before a check may leave the same times as one after it.
_CLOCK_MARGIN: Final = 2.0


def is_checked(db: sqlite3.Connection, path: Path) -> bool:
    """Return whether all pages were checked and nothing was written since."""
    try:
        stamp = json.loads(stamp_path(path).read_text(encoding="utf-8"))
        age = time.time() - stamp.pop("checked")
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False
    fresh = bool(0 <= age <= STAMP_DAYS * _DAY)
    return fresh and stamp == _file_state(ledger_chain.chain_top(db), path)


def check_pages(db: sqlite3.Connection, path: Path) -> bool:
    """Check all pages, and write a stamp if the file is large."""
    before, began = _file_state(ledger_chain.chain_top(db), path), time.time()
    if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        return False
    large = path.stat().st_size >= SMALLEST_STAMPED
    after = _file_state(ledger_chain.chain_top(db), path)
    if large and before and before == after and _is_unchanged(path, began):
        _write_stamp(stamp_path(path), before | {"checked": began})
    return True


def is_verified(db: sqlite3.Connection, path: Path) -> bool:
    """Return whether the sums were verified and nothing was written since."""
    try:
        stamp = json.loads(_sums_stamp_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(stamp == _file_state(ledger_chain.chain_top(db), path))


def stamp_verified(path: Path, top: tuple[int, str]) -> None:
    """Write a stamp that the sums were verified up to ``top``.

    Whoever writes in the same moment appends to the chain, which is then another.
    """
    state = _file_state(top, path)
    if state and path.stat().st_size >= SMALLEST_SUMS:
        _write_stamp(_sums_stamp_path(path), state)


def _sums_stamp_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.added")


def stamp_path(path: Path) -> Path:
    """Return the path of the stamp of checked pages."""
    return path.with_name(f".{path.name}.checked")


def _file_state(top: tuple[int, str], path: Path) -> dict[str, Any] | None:
    """Return what identifies a file's content; None while a journal waits."""
    journal = Path(f"{path}-wal")
    if journal.exists() and journal.stat().st_size:
        return None
    status = path.stat()
    times = status.st_mtime_ns, status.st_ctime_ns
    return {"file": [status.st_ino, status.st_size, *times], "top": list(top)}


def _is_unchanged(path: Path, began: float) -> bool:
    return path.stat().st_ctime < began - _CLOCK_MARGIN


def _write_stamp(stamp: Path, content: dict[str, Any]) -> None:
    """Write a stamp atomically."""
    temporary = stamp.with_name(f"{stamp.name}.{os.getpid()}")
    with suppress(OSError):
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(content, stream)
        temporary.replace(stamp)
