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

import json
import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from curvote.base.durable import DurableFile
from curvote.base.errors import UserError
from curvote.ledger import chain

# Below, checking takes less time than a stamp is worth.
SMALLEST_STAMPED: Final = 16 * 2**20
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
    return fresh and stamp == _file_state(chain.chain_top(db), path)


def check_pages(db: sqlite3.Connection, path: Path) -> bool:
    """Check all pages, and write a stamp if the file is large."""
    before, began = _file_state(chain.chain_top(db), path), time.time()
    if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        return False
    large = path.stat().st_size >= SMALLEST_STAMPED
    after = _file_state(chain.chain_top(db), path)
    settled = before == after and path.stat().st_ctime < began - _CLOCK_MARGIN
    if large and before and settled:
        _write_stamp(stamp_path(path), before | {"checked": began})
    return True


def is_verified(db: sqlite3.Connection, path: Path) -> bool:
    """Return whether the sums were verified and nothing was written since."""
    try:
        stamp = json.loads(_sums_stamp_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(stamp == _file_state(chain.chain_top(db), path))


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


def _write_stamp(stamp: Path, content: dict[str, Any]) -> None:
    """Write a stamp atomically."""
    temporary = stamp.with_name(f"{stamp.name}.{os.getpid()}")
    with suppress(OSError):
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(content, stream)
        temporary.replace(stamp)


# The one row of `totals` that every client starts from.
ZERO_TOTAL_ID: Final = 1

# Amounts are decimal text, which adds up exactly. A client's running total is kept as a
# reference to one of few distinct totals, so a reservation takes time in proportion to
# its cohort, whatever was released before. `members` only ever grows at its end.
_SCHEMA_1: Final = """
CREATE TABLE populations (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE CHECK (name <> '')
) STRICT;
CREATE TABLE totals (
  id INTEGER PRIMARY KEY,
  epsilon TEXT NOT NULL CHECK (CAST(epsilon AS REAL) >= 0),
  delta TEXT NOT NULL CHECK (CAST(delta AS REAL) >= 0),
  UNIQUE (epsilon, delta)
) STRICT;
CREATE TABLE clients (
  number INTEGER PRIMARY KEY,
  population INTEGER NOT NULL REFERENCES populations,
  client TEXT NOT NULL CHECK (client <> ''),
  total INTEGER NOT NULL REFERENCES totals,
  UNIQUE (population, client)
) STRICT;
CREATE TABLE releases (
  number INTEGER PRIMARY KEY,
  release TEXT NOT NULL UNIQUE CHECK (release <> ''),
  population INTEGER NOT NULL REFERENCES populations,
  state TEXT NOT NULL,
  epsilon TEXT NOT NULL CHECK (CAST(epsilon AS REAL) > 0),
  delta TEXT NOT NULL CHECK (CAST(delta AS REAL) BETWEEN 0 AND 1),
  cap_epsilon TEXT,
  cap_delta TEXT,
  n_clients INTEGER NOT NULL CHECK (n_clients > 0),
  facts TEXT NOT NULL,
  reserved TEXT NOT NULL,
  settled TEXT,
  place TEXT,
  digest TEXT,
  reason TEXT,
  CHECK (state IN ('reserved', 'confirmed', 'cancelled', 'spent')),
  CHECK ((state = 'reserved') = (settled IS NULL)),
  CHECK ((state = 'confirmed') = (place IS NOT NULL)),
  CHECK ((state = 'confirmed') = (digest IS NOT NULL)),
  CHECK ((state = 'spent') = (reason IS NOT NULL)),
  CHECK ((cap_epsilon IS NULL) = (cap_delta IS NULL))
) STRICT;
CREATE TABLE members (
  release INTEGER NOT NULL REFERENCES releases,
  client INTEGER NOT NULL REFERENCES clients,
  PRIMARY KEY (release, client)
) STRICT, WITHOUT ROWID;
INSERT INTO totals VALUES (1, '0', '0');
"""

# What no setting and no task may say: the cap of a population and facts written once.
# `chain` holds all that was ever entered, each link over the one before it.
_SCHEMA_2: Final = (
    """CREATE TABLE caps (
  population INTEGER PRIMARY KEY REFERENCES populations,
  epsilon TEXT NOT NULL CHECK (CAST(epsilon AS REAL) > 0),
  delta TEXT NOT NULL CHECK (CAST(delta AS REAL) BETWEEN 0 AND 1)
) STRICT""",
    """CREATE TABLE settings (
  name TEXT PRIMARY KEY CHECK (name <> ''),
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE chain (
  number INTEGER PRIMARY KEY,
  event TEXT NOT NULL,
  link TEXT NOT NULL UNIQUE CHECK (length(link) = 64)
) STRICT""",
)


class _LedgerFile(DurableFile):
    """The file of a ledger, upgraded from earlier formats when opened."""

    def connect(self, path: Path) -> sqlite3.Connection:
        """Open the file at ``path``, upgraded if its format is earlier."""
        try:
            return super().connect(path)
        except UserError:
            with suppress(UserError):  # it is no earlier one either: said once more
                self._upgrade(path)
            return super().connect(path)

    def _write_schema(self, path: Path) -> None:
        super()._write_schema(path)
        with closing(sqlite3.connect(path)) as db, db:
            chain.begin_chain(db)

    def _is_sound(self, db: sqlite3.Connection, path: Path) -> bool:
        """Return whether all pages are intact, checked only after writes."""
        return is_checked(db, path) or check_pages(db, path)

    def _upgrade(self, path: Path) -> None:
        """Add caps and chain to a file of format 1, all or nothing."""
        with (
            closing(_FORMAT_1.connect(path)) as db,
            self.transaction(db, path, "IMMEDIATE"),
        ):
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == _FORMAT_1.version:  # else another process was first
                _FORMAT_1.back_up(path)
                for statement in (*_SCHEMA_2, f"PRAGMA user_version = {self.version}"):
                    db.execute(statement)
                chain.begin_chain(db)
                chain.adopt_format_1(db)


def _ledger_format(kind: type[DurableFile], version: int, schema: str) -> DurableFile:
    return kind(
        kind="ledger",
        record="what was released about each client",
        application=0x4375566F,  # "CuVo"
        version=version,
        schema=schema,
        way_out=(
            "Put its latest backup in its place (in a project: `curvote ledger restore"
            " FILE`, which forgets nothing)"
        ),
    )


_FORMAT_1: Final = _ledger_format(DurableFile, 1, _SCHEMA_1)
LEDGER: Final = _ledger_format(_LedgerFile, 2, f"{_SCHEMA_1}{';'.join(_SCHEMA_2)};")
