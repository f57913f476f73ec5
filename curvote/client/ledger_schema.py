"""The file of a ledger: its tables, and what makes it one."""

from __future__ import annotations

from typing import Final

from curvote.durable import DurableFile

# The one row of `totals` that every client starts from.
NOTHING_SPENT: Final = 1

# Amounts are decimal text, which adds up exactly. A client's running total is kept as a
# reference to one of few distinct totals, so a reservation takes time in proportion to
# its cohort, whatever was released before. `members` only ever grows at its end.
_SCHEMA: Final = """
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

LEDGER: Final = DurableFile(
    kind="ledger",
    record="what was released about each client",
    application=0x4375566F,  # "CuVo"
    version=1,
    schema=_SCHEMA,
)
