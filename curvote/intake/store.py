"""Storage of an intake: its SQLite file, or the interface of a database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol

from curvote.base.durable import DurableFile
from curvote.base.errors import UserError

# `messages` has no time and no invitation; its keys are random, so that neither their
# order nor their distance says anything. `used` is a mark without a time.
_SCHEMA_1: Final = """
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
"""

# Which messages were folded in together; a closed round has folded in all of them.
_ADD_BATCHES: Final = (
    "ALTER TABLE messages ADD COLUMN batch INTEGER CHECK (batch > 0)",
    """UPDATE messages SET batch = 1 WHERE round IN
    (SELECT number FROM rounds WHERE accepted_digest IS NOT NULL)""",
)


# The private half of the key that a round's envelopes are sealed to, 64 hex digits.
_ADD_SEALS: Final = ("ALTER TABLE rounds ADD COLUMN seal TEXT",)
# The public record that an invitation is about, whose answers are found by its name.
_ADD_RECORDS: Final = (
    "ALTER TABLE invitations ADD COLUMN record TEXT",
    """CREATE INDEX invitations_about ON invitations (round, record)
    WHERE record IS NOT NULL""",
)
# What each format added to the one before it, the second first.
_CHANGES: Final = (_ADD_BATCHES, _ADD_SEALS, _ADD_RECORDS)


class _IntakeFile(DurableFile):
    """The file of an intake, upgraded from earlier formats when opened."""

    def connect(self, path: Path) -> sqlite3.Connection:
        """Open the file at ``path``, upgraded if its format is earlier."""
        try:
            return super().connect(path)
        except UserError:
            for old in _EARLIER:
                with suppress(UserError):  # it is none of that format: said once more
                    self._upgrade(path, old)
            return super().connect(path)

    def _upgrade(self, path: Path, old: DurableFile) -> None:
        with (
            closing(old.connect(path)) as db,
            self.transaction(db, path, "IMMEDIATE"),
        ):
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version != old.version:
                return  # another process was first
            old.back_up(path)
            for statement in chain(*_CHANGES[old.version - 1 :]):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {self.version}")


def _intake_format(kind: type[DurableFile], version: int) -> DurableFile:
    # Altered like an old file: the text of both is the same.
    changes = chain(*_CHANGES[: version - 1])
    return kind(
        kind="intake",
        record="which invitations were used",
        application=0x43754969,  # "CuIi"
        version=version,
        schema="".join((_SCHEMA_1, *(f"{change};" for change in changes))),
    )


_EARLIER: Final = tuple(
    _intake_format(DurableFile, k + 1) for k in range(len(_CHANGES))
)
INTAKE: Final = _intake_format(_IntakeFile, len(_CHANGES) + 1)


# Names a database that several services share; nothing else may hold its password.
URL_VARIABLE: Final = "CURVOTE_INTAKE_URL"


class IntakeStore(Protocol):
    """Protocol of an intake's rows, for one thread.

    ``name`` says where they are, without a secret. ``sizes`` joins the sizes of batches
    to one text. What the database says is a UserError: it cannot be reached, is no
    intake, damaged or newer, has no room, or was kept by others for too long.
    """

    name: str
    sizes: str

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""

    def change_many(self, change: str, values: Iterable[Sequence[Any]]) -> None:
        """Make a change for each set of values, in a transaction."""

    def writing(self) -> AbstractContextManager[None]:
        """Return a context of one write transaction."""

    def errors(self) -> AbstractContextManager[None]:
        """Return a context that translates errors of the database."""

    def lock(self, invitations: Sequence[str]) -> None:
        """Lock these invitations until the transaction's end."""

    def lock_round(self, round_id: str) -> None:
        """Lock a round against new messages until the transaction's end."""

    def tidy(self) -> None:
        """Rewrite all rows by key, without traces of their arrival."""

    def close(self) -> None:
        """Close the connection."""


class SQLiteStore:
    """The rows of an intake in one SQLite file with one writer at a time."""

    sizes = "group_concat(n)"

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self.db = INTAKE.connect(path)

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        with self.errors():
            return self.db.execute(query, values).fetchall()

    def change_many(self, change: str, values: Iterable[Sequence[Any]]) -> None:
        """Make a change for each set of values."""
        with self.errors():
            self.db.executemany(change, values)

    def writing(self) -> AbstractContextManager[None]:
        """Return a context of one write transaction."""
        return INTAKE.transaction(self.db, self.path, "IMMEDIATE")

    def errors(self) -> AbstractContextManager[None]:
        """Return a context that translates errors of the database."""
        return INTAKE.errors(self.path)

    def lock(self, invitations: Sequence[str]) -> None:
        """Do nothing, as there is one writer only."""

    def lock_round(self, round_id: str) -> None:
        """Do nothing, as there is one writer only."""

    def tidy(self) -> None:
        """Rewrite the file by key, without traces of arrival.

        SQLite puts a row where there is room on its page, so that places follow arrival
        until then. Whether or not anything changed: the last one may have been killed
        before this.
        """
        with self.errors():
            self.db.execute("VACUUM")
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connection; the last one removes the write-ahead log."""
        self.db.close()


def connect_store(path: Path) -> IntakeStore:
    """Return the store of the database in the environment, else at ``path``."""
    url = os.environ.get(URL_VARIABLE)
    if not url:
        return SQLiteStore(path)
    from curvote.intake.postgres import PostgresStore

    return PostgresStore(url)


def store_location(path: Path) -> str:
    """Return the intake's location for messages, without a secret."""
    return (
        f"the database of {URL_VARIABLE}" if os.environ.get(URL_VARIABLE) else str(path)
    )


def store_exists(path: Path) -> bool:
    """Return whether an intake exists, or a database for one is named."""
    return bool(os.environ.get(URL_VARIABLE)) or path.exists()
