"""Storage of an intake: its SQLite file, or a PostgreSQL database shared by several."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from curvote.base.durable import DurableFile
from curvote.base.errors import InternalError, UserError

if TYPE_CHECKING:
    import psycopg


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
# How a round keeps its messages (null: as rows, opened before there was a choice), the
# tree of its invitations if it has one, and the sets that were merged in. `sums` has no
# time and no invitation either; what waits has no batch, one row a process that takes.
# `marks` holds which places of a tree were used, a bit each.
_ADD_SUMS: Final = (
    "ALTER TABLE rounds ADD COLUMN keep TEXT",
    "ALTER TABLE rounds ADD COLUMN tree TEXT",
    "ALTER TABLE rounds ADD COLUMN merged TEXT",
    """CREATE TABLE sums (
  part INTEGER PRIMARY KEY,
  round INTEGER NOT NULL REFERENCES rounds,
  batch INTEGER CHECK (batch > 0),
  n INTEGER NOT NULL CHECK (n > 0),
  state TEXT NOT NULL
) STRICT""",
    """CREATE TABLE marks (
  round INTEGER NOT NULL REFERENCES rounds,
  block INTEGER NOT NULL,
  bits BLOB NOT NULL,
  PRIMARY KEY (round, block)
) STRICT, WITHOUT ROWID""",
)
# The key of a round that gives receipts (null: it gives none), and the leaf of each
# envelope that it accepted. A leaf has the batch of its message, and no more of it.
_ADD_RECEIPTS: Final = (
    "ALTER TABLE rounds ADD COLUMN receipts TEXT",
    """CREATE TABLE leaves (
  leaf BLOB PRIMARY KEY,
  round INTEGER NOT NULL REFERENCES rounds,
  batch INTEGER CHECK (batch > 0)
) STRICT, WITHOUT ROWID""",
)
# What each format added to the one before it, the second first.
_CHANGES: Final = (_ADD_BATCHES, _ADD_SEALS, _ADD_RECORDS, _ADD_SUMS, _ADD_RECEIPTS)


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
        with closing(old.connect(path)) as db, self.transaction(db, path, "IMMEDIATE"):
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


class SQLiteStore:
    """The rows of an intake in one SQLite file with one writer at a time.

    ``name`` says where they are, without a secret. ``sizes`` joins the sizes of batches
    to one text. What the database says is a UserError: it cannot be reached, is no
    intake, damaged or newer, has no room, or was kept by others for too long.
    """

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

    def lock_marks(self, number: int, blocks: Sequence[int]) -> None:
        """Do nothing, as there is one writer only."""

    def tidy(self, merge: Callable[[], None]) -> None:
        """Rewrite the file by key, without traces of arrival, after a ``merge``.

        SQLite puts a row where there is room on its page, so that places follow arrival
        until then. Whether or not anything changed: the last one may have been killed
        before this.
        """
        with self.writing():
            merge()
        with self.errors():
            self.db.execute("VACUUM")
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connection; the last one removes the write-ahead log."""
        self.db.close()


def store_location(path: Path) -> str:
    """Return the intake's location for messages, without a secret."""
    named = os.environ.get(URL_VARIABLE)
    return f"the database of {URL_VARIABLE}" if named else str(path)


def store_exists(path: Path) -> bool:
    """Return whether an intake exists, or a database for one is named."""
    return bool(os.environ.get(URL_VARIABLE)) or path.exists()


POSTGRES_FORMAT: Final = 3
# Others may keep rows for so long, as with a file (seconds); connecting takes less.
BUSY_SECONDS: Final = 60
CONNECT_SECONDS: Final = 10
# `messages` has no time and no invitation; see the schema of the file. Behind it stands
# what each later format added.
_SCHEMA: Final = """
CREATE TABLE curvote_intake (format INTEGER NOT NULL);
INSERT INTO curvote_intake VALUES (1);
CREATE TABLE rounds (
  number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (id <> ''),
  pipeline TEXT NOT NULL,
  task TEXT NOT NULL,
  digest TEXT NOT NULL,
  needed INTEGER NOT NULL CHECK (needed > 0),
  accepted_digest TEXT,
  seal TEXT
);
CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  round BIGINT NOT NULL REFERENCES rounds,
  key TEXT NOT NULL,
  about INTEGER,
  used INTEGER NOT NULL DEFAULT 0 CHECK (used IN (0, 1)),
  record TEXT
);
CREATE TABLE messages (
  "row" BIGINT PRIMARY KEY,
  round BIGINT NOT NULL REFERENCES rounds,
  payload TEXT NOT NULL,
  batch INTEGER CHECK (batch > 0)
);
CREATE INDEX invitations_of ON invitations (round);
CREATE INDEX messages_of ON messages (round);
CREATE INDEX invitations_about ON invitations (round, record) WHERE record IS NOT NULL;
"""
_UPGRADES: Final = (
    """
ALTER TABLE rounds ADD COLUMN keep TEXT, ADD COLUMN tree TEXT, ADD COLUMN merged TEXT;
CREATE TABLE sums (
  part BIGINT PRIMARY KEY,
  round BIGINT NOT NULL REFERENCES rounds,
  batch INTEGER CHECK (batch > 0),
  n BIGINT NOT NULL CHECK (n > 0),
  state TEXT NOT NULL
);
CREATE TABLE marks (
  round BIGINT NOT NULL REFERENCES rounds,
  block BIGINT NOT NULL,
  bits BYTEA NOT NULL,
  PRIMARY KEY (round, block)
);
UPDATE curvote_intake SET format = 2;
""",
    """
ALTER TABLE rounds ADD COLUMN receipts TEXT;
CREATE TABLE leaves (
  leaf BYTEA PRIMARY KEY,
  round BIGINT NOT NULL REFERENCES rounds,
  batch INTEGER CHECK (batch > 0)
);
UPDATE curvote_intake SET format = 3;
""",
)
# Under any other setting the server itself would keep what the intake does not: its log
# names the time of a statement and, unless told otherwise, the values in it.
_SILENT_SETTINGS: Final = {
    "track_commit_timestamp": ("off",),
    "log_statement": ("none", "ddl"),
    "log_duration": ("off",),
    "log_min_duration_statement": ("-1",),
    "log_min_duration_sample": ("-1",),
    "log_transaction_sample_rate": ("0",),
}
# For each connection, whatever the server's own setting: an answer comes after the disk
# has it, and nobody reads from before `tidy` what is there no more.
_SETTINGS: Final = (
    "-c timezone=UTC -c synchronous_commit=on"
    r" -c default_transaction_isolation=read\ committed"
)
# What is wrong, by the beginnings of the server's codes; none: it did not answer.
_ERROR_TEXTS: Final = {
    ("55P03", "40P01"): f"others have kept it for over {BUSY_SECONDS} s; run again",
    ("23505",): "another process has just written the same; run again",
    ("53",): "its server has no room (disk, memory, connections)",
    ("42P07", "42P01", "42703"): (
        "it holds other tables; name an empty database, or a schema of its own"
    ),
    ("42501", "25006"): "its user may not write there; grant it",
    ("08", "57", "3D"): (
        "it cannot be reached; look whether its server is up, and whether"
        " CURVOTE_INTAKE_URL is right"
    ),
}
# What is locked first: two who come for the same wait, and never for each other.
_ROUNDS: Final = """SELECT number FROM rounds WHERE tree IS NOT NULL OR number IN
(SELECT round FROM invitations WHERE id = ANY(?)) ORDER BY number FOR SHARE"""
_INVITATIONS: Final = """SELECT id FROM invitations WHERE id = ANY(?) OR (round, record)
IN (SELECT round, record FROM invitations WHERE id = ANY(?) AND record IS NOT NULL)
ORDER BY id FOR UPDATE"""
_MARKS: Final = """SELECT block FROM marks WHERE round = ? AND block = ANY(?)
ORDER BY block FOR UPDATE"""
# Filled in random order of rows: a key is random, and an id, too; marks by place. In
# the order in which whoever takes envelopes in locks them.
_LOCK: Final = """LOCK TABLE invitations, marks, messages, sums, leaves
IN ACCESS EXCLUSIVE MODE"""
_TIDY: Final = (
    "CREATE TEMPORARY TABLE kept_i ON COMMIT DROP AS SELECT * FROM invitations",
    "CREATE TEMPORARY TABLE kept_l ON COMMIT DROP AS SELECT * FROM leaves",
    "CREATE TEMPORARY TABLE kept_k ON COMMIT DROP AS SELECT * FROM marks",
    "CREATE TEMPORARY TABLE kept_m ON COMMIT DROP AS SELECT * FROM messages",
    "CREATE TEMPORARY TABLE kept_s ON COMMIT DROP AS SELECT * FROM sums",
    "TRUNCATE invitations, leaves, marks, messages, sums",
    "INSERT INTO invitations SELECT * FROM kept_i ORDER BY id",
    "INSERT INTO leaves SELECT * FROM kept_l ORDER BY leaf",
    "INSERT INTO marks SELECT * FROM kept_k ORDER BY round, block",
    'INSERT INTO messages SELECT * FROM kept_m ORDER BY "row"',
    "INSERT INTO sums SELECT * FROM kept_s ORDER BY part",
)


class PostgresStore:
    """The rows of an intake in a PostgreSQL database, as of `SQLiteStore`."""

    sizes = "string_agg(n::text, ',' ORDER BY batch)"

    def __init__(self, url: str) -> None:
        try:
            import psycopg
            import psycopg.conninfo
        except ImportError:
            raise UserError(
                "CURVOTE_INTAKE_URL names a PostgreSQL database, for which psycopg is"
                " needed: pip install 'curvote[postgres]'."
            ) from None
        self._psycopg = psycopg
        try:
            parameters = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            raise UserError(
                "CURVOTE_INTAKE_URL names no database; it is like"
                " postgresql://user:password@host:5432/database."
            ) from None
        place = parameters.get("host") or parameters.get("hostaddr") or "localhost"
        port, name = parameters.get("port", 5432), parameters.get("dbname")
        self.name = f"postgresql://{place}:{port}/{name}"  # without user and password
        with self.errors():
            self._db = self._psycopg.connect(
                url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                application_name="curvote",
                options=f"-c lock_timeout={BUSY_SECONDS}s {_SETTINGS}",
            )
        try:
            for setting, silent in _SILENT_SETTINGS.items():
                # None: this version of the server has no such setting.
                ((value,),) = self.rows("SELECT current_setting(?, true)", setting)
                if value not in (None, *silent):
                    raise self._refusal_error(
                        f"its server has {setting} = {value}, which would keep when or"
                        " under which invitation a message came; turn it off"
                    )
            with self.writing():
                # Two services that start together: one makes the tables.
                self._db.execute("SELECT pg_advisory_xact_lock(4853117)")
                query = "SELECT to_regclass('curvote_intake') IS NOT NULL"
                ((exists,),) = self.rows(query)
                if not exists:
                    self._db.execute(_SCHEMA)
                query = "SELECT max(format) FROM curvote_intake"
                ((version,),) = self.rows(query)
                if 0 < version < POSTGRES_FORMAT:
                    for upgrade in _UPGRADES[version - 1 :]:
                        self._db.execute(upgrade)
                    ((version,),) = self.rows(query)
            if version != POSTGRES_FORMAT:
                raise self._refusal_error(
                    f"another curvote wrote it (format {version}, this one reads"
                    f" {POSTGRES_FORMAT}); update curvote"
                )
        except BaseException:
            self.close()
            raise

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        with self.errors():
            cursor = self._db.execute(_with_placeholders(query), values)
            rows: list[Any] = cursor.fetchall()
            return rows

    def change_many(self, change: str, values: Iterable[Sequence[Any]]) -> None:
        """Make a change for each set of values."""
        with self.errors(), self._db.cursor() as cursor:
            cursor.executemany(_with_placeholders(change), list(values))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Return a context of one write transaction."""
        with self.errors(), self._db.transaction():
            yield

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Translate errors of the database into a UserError without secrets."""
        try:
            yield
        except self._psycopg.Error as error:
            raise self._translate_error(error) from None
        except ValueError as error:
            if isinstance(error, UserError):
                raise
            words = "it is damaged: put its latest backup back"
            raise self._refusal_error(words) from error

    def lock(self, invitations: Sequence[str]) -> None:
        """Lock these invitations, and their rounds against closing."""
        names = list(invitations)
        self.rows(_ROUNDS, names)
        self.rows(_INVITATIONS, names, names)

    def lock_round(self, round_id: str) -> None:
        """Lock a round against new messages."""
        query = "SELECT number FROM rounds WHERE id = ? FOR NO KEY UPDATE"
        self.rows(query, round_id)

    def lock_marks(self, number: int, blocks: Sequence[int]) -> None:
        """Lock the marks of these blocks of a round's tree, made where they are not."""
        make = "INSERT INTO marks VALUES (?, ?, '') ON CONFLICT DO NOTHING"
        self.change_many(make, [(number, block) for block in blocks])
        self.rows(_MARKS, number, list(blocks))

    def tidy(self, merge: Callable[[], None]) -> None:
        """Rewrite all rows by key, in one transaction, after a ``merge``."""
        with self.writing():
            self._db.execute(_LOCK)
            merge()
            for statement in _TIDY:
                self._db.execute(statement)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _translate_error(self, error: psycopg.Error) -> Exception:
        state = error.sqlstate or ""
        if state.startswith("28") or "authentication failed" in str(error):
            words = "refuses the user or the password that CURVOTE_INTAKE_URL names"
            return self._refusal_error(f"its server {words}")
        for starts, words in _ERROR_TEXTS.items():
            if state.startswith(starts) or (not state and "08" in starts):
                return self._refusal_error(words)
        return InternalError(f"intake {self.name}: {type(error).__name__} {state}")

    def _refusal_error(self, words: str) -> UserError:
        return UserError(f"the intake {self.name}: {words}. Nothing was changed.")


def _with_placeholders(query: str) -> str:
    return query.replace("?", "%s")
