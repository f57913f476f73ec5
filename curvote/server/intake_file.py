"""The file of an intake: its tables, and what makes it one."""

from __future__ import annotations

from typing import Final

from curvote.durable import DurableFile

# `messages` has no time and no invitation; its keys are random, so that neither their
# order nor their distance says anything. `used` is a mark without a time.
_SCHEMA: Final = """
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

INTAKE: Final = DurableFile(
    kind="intake",
    record="which invitations were used",
    application=0x43754969,  # "CuIi"
    version=1,
    schema=_SCHEMA,
)
