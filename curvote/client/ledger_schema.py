"""The file of a ledger: its tables, and opening it or refusing to.

It fails closed: what cannot be read as a ledger is never replaced by an empty one,
because an empty ledger would let every client be asked again.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import InvalidOperation
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from curvote.errors import InternalError, UserError

APPLICATION: Final = 0x4375566F  # "CuVo" in the header of the file
VERSION: Final = 1
# A reservation of a million clients takes seconds, and several may wait for each other.
BUSY_SECONDS: Final = 60.0
# The one row of `totals` that every client starts from.
NOTHING_SPENT: Final = 1

# Amounts are decimal text, which adds up exactly. A client's running total is kept as a
# reference to one of few distinct totals, so a reservation takes time in proportion to
# its cohort, whatever was released before. `members` only ever grows at its end.
# A file must hold this very text: any change of it needs another VERSION.
SCHEMA: Final = """
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
_CREATE: Final = f"""
PRAGMA journal_mode = WAL;
BEGIN;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
{SCHEMA}
COMMIT;
"""

DAMAGED: Final = (
    "it is damaged. Put its latest backup in its place; do not delete it: only the"
    " ledger knows what was released about each client"
)
_WORDS: Final = {
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened; it must be a file that can be read and written, in a"
        " folder that can be written"
    ),
    sqlite3.SQLITE_READONLY: "it cannot be written; allow writing to it and its folder",
    sqlite3.SQLITE_FULL: "no space is left on its disk; free some and run again",
    sqlite3.SQLITE_IOERR: "its disk fails; put the ledger on a sound one",
}


def connect(path: Path) -> sqlite3.Connection:
    """Open the ledger at ``path``, or create it if there is no such file.

    A file that is damaged, of another application or of a newer curvote, or that
    cannot be read and written, is a UserError and stays as it is.
    """
    with storage_errors(path):
        if not os.path.lexists(path):
            _create(path)
        # Read through SQLite only: closing a file of our own would drop the locks
        # that another connection of this process holds on it.
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",  # rw: never creates
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
        )
        try:
            _recognise(db, path)
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
        return db


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite and the disk say into a UserError that names the ledger."""
    try:
        yield
    except sqlite3.Error as error:
        raise _in_words(path, error) from error
    except (InvalidOperation, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise refusal(path, DAMAGED) from error
    except OSError as error:
        raise refusal(path, f"{error.strerror or error}") from error


def refusal(path: Path, words: str) -> UserError:
    """Return the error that says what is wrong with the ledger at ``path``."""
    return UserError(f"the ledger {path}: {words}. Nothing was changed.")


def _in_words(path: Path, error: sqlite3.Error) -> Exception:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and "decode" in str(error):  # text that is no text any more
        return refusal(path, DAMAGED)
    primary = -1 if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_BUSY:
        return refusal(
            path,
            f"another process has kept it for over {BUSY_SECONDS:g} s; wait until that"
            " is done and run again",
        )
    if primary in _WORDS:
        return refusal(path, _WORDS[primary])
    return InternalError(f"ledger {path}: {error}")


def _create(path: Path) -> None:
    """Make an empty ledger aside and link it to its name, whole or not at all."""
    if sqlite3.sqlite_version_info < (3, 37):
        raise refusal(path, "it needs SQLite 3.37 or later under Python")
    for end in ("-wal", "-journal"):
        if os.path.lexists(f"{path}{end}"):
            raise refusal(
                path,
                f"it is missing but {path.name}{end} is there. Put the ledger back, or"
                " its latest backup without that file",
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        made = Path(folder) / path.name
        with closing(sqlite3.connect(made, isolation_level=None)) as db:
            db.executescript(_CREATE)
        made.chmod(0o600)  # it names clients
        try:
            os.link(made, path)
        except FileExistsError:
            return  # another process was first
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _recognise(db: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no ledger, before anything that could write."""
    application, version = (
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise refusal(
            path,
            "this file is empty, cut off or another application's. Name the right file,"
            " or put the ledger's latest backup in its place",
        )
    if version > VERSION:
        raise refusal(
            path,
            f"a newer curvote wrote it (format {version}, this one reads {VERSION});"
            " update curvote",
        )
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(SCHEMA)
        if version != VERSION or _tables(db) != _tables(model):
            raise refusal(path, DAMAGED)


def _tables(db: sqlite3.Connection) -> list[tuple[str, str | None]]:
    return db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise refusal(
            path, "its file system allows no write-ahead log; use a local one"
        )
    for setting in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "cell_size_check = ON",
        "trusted_schema = OFF",
        "temp_store = MEMORY",
    ):
        db.execute(f"PRAGMA {setting}")
    if _is_cut(db, path):
        raise refusal(path, DAMAGED)
    # 0.2 s for a million clients with two releases each.
    if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise refusal(path, DAMAGED)


def _is_cut(db: sqlite3.Connection, path: Path) -> bool:
    """Say whether a part of the last page is missing: SQLite would read zeros there.

    A checkpoint that met a full disk may leave that, but then the journal repairs it.
    """
    (page,) = db.execute("PRAGMA page_size").fetchone()
    journal = Path(f"{path}-wal")
    pending = journal.is_file() and journal.stat().st_size > 0
    return not pending and path.stat().st_size % page != 0
