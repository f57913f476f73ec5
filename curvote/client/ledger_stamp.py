"""When a ledger was last checked, so that opening it and reserving stay cheap.

Reading every page of a ledger of ten million clients takes seconds. A stamp beside it
says what was checked: the file's number, size and times, and the chain's newest link.
While these are the same, and no journal waits, the pages are not read again.

What that does not cover: a disk that gives other bytes than were written, without any
write, is noticed when SQLite meets the page, by `curvote ledger check`, or at the next
opening after `DAYS`; so is whoever sets the clock back, writes, and sets it right
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

SMALLEST: Final = 16 * 2**20  # below, checking takes less time than a stamp is worth
DAYS: Final = 7
_DAY: Final = 86_400
# Below, entries are added up in less than a tenth of a second.
SMALLEST_SUMS: Final = 2**20
# A write this soon before a check may leave the same times as one after it.
_BLINK: Final = 2.0


def is_checked(db: sqlite3.Connection, path: Path) -> bool:
    """Say whether all pages were found sound, and nothing was written since."""
    try:
        known = json.loads(stamp_of(path).read_text(encoding="utf-8"))
        age = time.time() - known.pop("checked")
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False
    fresh = bool(0 <= age <= DAYS * _DAY)
    return fresh and known == _state(ledger_chain.top(db), path)


def check(db: sqlite3.Connection, path: Path) -> bool:
    """Check all pages; write down that they are sound, if that is worth it."""
    before, began = _state(ledger_chain.top(db), path), time.time()
    if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        return False
    large = path.stat().st_size >= SMALLEST
    after = _state(ledger_chain.top(db), path)
    if large and before and before == after and _still(path, began):
        _write(stamp_of(path), before | {"checked": began})
    return True


def is_added_up(db: sqlite3.Connection, path: Path) -> bool:
    """Say whether entries and totals were found to agree, and nothing written since."""
    try:
        known = json.loads(_sums_of(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(known == _state(ledger_chain.top(db), path))


def keep_added_up(path: Path, top: tuple[int, str]) -> None:
    """Write down that they agree up to ``top``, of a ledger that was just closed.

    Whoever writes in the same moment appends to the chain, which is then another.
    """
    state = _state(top, path)
    if state and path.stat().st_size >= SMALLEST_SUMS:
        _write(_sums_of(path), state)


def _sums_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.added")


def stamp_of(path: Path) -> Path:
    """Return where the stamp of a ledger is."""
    return path.with_name(f".{path.name}.checked")


def _state(top: tuple[int, str], path: Path) -> dict[str, Any] | None:
    """Return what changes with every write; None while a journal waits."""
    journal = Path(f"{path}-wal")
    if journal.exists() and journal.stat().st_size:
        return None
    found = path.stat()
    times = found.st_mtime_ns, found.st_ctime_ns
    return {"file": [found.st_ino, found.st_size, *times], "top": list(top)}


def _still(path: Path, began: float) -> bool:
    return path.stat().st_ctime < began - _BLINK


def _write(stamp: Path, content: dict[str, Any]) -> None:
    """Write it whole or not at all; without one the pages are checked again."""
    made = stamp.with_name(f"{stamp.name}.{os.getpid()}")
    with suppress(OSError):
        handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(content, stream)
        made.replace(stamp)
