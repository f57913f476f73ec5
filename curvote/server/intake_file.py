"""The file of an intake: its tables, and opening it or refusing to.

It fails closed: what cannot be read as an intake is never replaced by an empty one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from curvote.errors import UserError

APPLICATION: Final = 0x43754969  # "CuIi" in the header of the file
VERSION: Final = 1
BUSY_SECONDS: Final = 60.0

# `messages` has no time and no invitation; its keys are random, so that neither their
# order nor their distance says anything. `used` is a mark without a time.
SCHEMA: Final = f"""
PRAGMA journal_mode = WAL;
BEGIN;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE rounds (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (id <> ''),
  pipeline TEXT NOT NULL,
  task TEXT NOT NULL,
  digest TEXT NOT NULL,
  needed INTEGER NOT NULL CHECK (needed > 0),
  accepted_digest TEXT
) STRICT;
CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  round INTEGER NOT NULL REFERENCES rounds,
  key TEXT NOT NULL,
  about INTEGER,
  used INTEGER NOT NULL DEFAULT 0 CHECK (used IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE TABLE messages (
  row INTEGER PRIMARY KEY,
  round INTEGER NOT NULL REFERENCES rounds,
  payload TEXT NOT NULL
) STRICT;
CREATE INDEX invitations_of ON invitations (round);
CREATE INDEX messages_of ON messages (round);
COMMIT;
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open the intake at ``path``, or create it if there is no such file.

    A file that is damaged, of another application or version, or that cannot be read
    and written, is a UserError and stays as it is.
    """
    with storage_errors(path):
        if not os.path.lexists(path):
            _create(path)
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",  # rw: never creates
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
        )
        try:
            _recognise(db, path)
        except BaseException:
            db.close()
            raise
        return db


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite and the disk say into a UserError that names the intake."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _refusal(path, str(error)) from error


def _refusal(path: Path, words: str) -> UserError:
    return UserError(f"the intake {path}: {words}. Nothing was changed.")


def _create(path: Path) -> None:
    """Make an empty intake aside and link it to its name, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        made = Path(folder) / path.name
        with closing(sqlite3.connect(made, isolation_level=None)) as db:
            db.executescript(SCHEMA)
        made.chmod(0o600)  # it holds the keys of invitations
        try:
            os.link(made, path)
        except FileExistsError:
            return  # another process was first


def _recognise(db: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no intake, before anything that could write."""
    application, version = (
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise _refusal(path, "this file is empty or another application's")
    if version != VERSION:
        raise _refusal(path, f"it has format {version}; this curvote reads {VERSION}")
    for setting in ("synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF"):
        db.execute(f"PRAGMA {setting}")
    if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise _refusal(path, "it is damaged. Put its latest backup in its place")
