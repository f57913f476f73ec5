"""File format of a ledger: tables, upgrades, and stamps of earlier checks."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from curvote.client import ledger_chain, ledger_stamp
from curvote.durable import DurableFile
from curvote.errors import UserError

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
            ledger_chain.begin_chain(db)

    def _is_sound(self, db: sqlite3.Connection, path: Path) -> bool:
        """Return whether all pages are intact, checked only after writes."""
        return ledger_stamp.is_checked(db, path) or ledger_stamp.check_pages(db, path)

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
                ledger_chain.begin_chain(db)
                ledger_chain.adopt_format_1(db)


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
