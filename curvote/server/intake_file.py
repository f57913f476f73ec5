"""Storage of an intake: its SQLite file, or the interface of a database."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Final

from curvote.durable import DurableFile
from curvote.errors import UserError

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
