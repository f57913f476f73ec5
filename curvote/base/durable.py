"""Crash-safe files: SQLite files that fail closed, and durable folders.

What cannot be read as the file it should be is never replaced by an empty one: an empty
ledger would let every client be asked again, an empty intake would take every
invitation again.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import InvalidOperation
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from curvote.base.errors import InternalError, UserError

# A reservation of a million clients takes seconds, and several may wait for each other.
BUSY_SECONDS: Final = 60.0
# For every connection: what is written stays written, rows refer to rows that exist,
# damage is noticed, and clients never pass through a temporary file.
_SETTINGS: Final = (
    "synchronous = FULL",
    "foreign_keys = ON",
    "cell_size_check = ON",
    "trusted_schema = OFF",
    "temp_store = MEMORY",
)
# What a mode allows to anybody but the owner.
OTHERS_MODE: Final = 0o077
_DAMAGED: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_ERROR_TEXTS: Final = {
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened; it must be a file that can be read and written, in a"
        " folder that can be written"
    ),
    sqlite3.SQLITE_READONLY: "it cannot be written; allow writing to it and its folder",
    sqlite3.SQLITE_FULL: "no space is left on its disk; free some and run again",
    sqlite3.SQLITE_IOERR: "its disk fails; put it on a sound one",
}


@dataclass(frozen=True)
class DurableFile:
    """A kind of SQLite file: how it is recognised, and when it is refused.

    ``kind`` is its name in messages, ``record`` what nothing else knows, for whoever
    would delete a damaged one. ``application`` and ``version`` stand in its header. A
    file must hold the very text of ``schema``: any change of it needs another version.
    ``way_out`` is what to do about a damaged one. ``journal`` is DELETE for a file that
    is read on a full disk, on a read-only one and on file systems without a WAL, too.
    """

    kind: str
    record: str
    application: int
    version: int
    schema: str
    way_out: str = "Put its latest backup in its place"
    journal: Literal["WAL", "DELETE"] = "WAL"

    def connect(self, path: Path) -> sqlite3.Connection:
        """Open the file at ``path``, or create it if there is no such file.

        One that is damaged, of another application or of a newer curvote, or that
        cannot be read and written, is a UserError and stays as it is.
        """
        with self.errors(path):
            if not os.path.lexists(path):
                self._create(path)
            # Read through SQLite only: closing a file of our own would drop the locks
            # that another connection of this process holds on it.
            db = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",  # rw: never creates
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
            )
            try:
                self._prepare_connection(db, path)
            except BaseException:
                db.close()
                raise
            return db

    @contextmanager
    def transaction(
        self, db: sqlite3.Connection, path: Path, kind: Literal["IMMEDIATE", "DEFERRED"]
    ) -> Iterator[None]:
        """Run a transaction: IMMEDIATE to write, DEFERRED to read one state."""
        with self.errors(path):
            db.execute(f"BEGIN {kind}")
            try:
                yield
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def back_up(self, path: Path) -> None:
        """Copy a file of this format before it is converted to another one.

        Whole or not at all; it takes the place of what an earlier attempt left.
        """
        with (
            self.errors(path),
            TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder,
            closing(self.connect(path)) as db,
        ):
            copy = Path(folder) / path.name
            with closing(sqlite3.connect(create_empty_file(copy))) as target:
                copy.chmod(0o600)
                db.backup(target)
            with copy.open("rb") as stream:
                os.fsync(stream.fileno())
            copy.replace(format_backup_path(path, self.version))
            sync_folder(path.parent)

    @contextmanager
    def errors(self, path: Path) -> Iterator[None]:
        """Translate errors of SQLite and the disk into a UserError.

        Content that is not what was written counts as damage; an error that no state
        of file or disk explains is an InternalError.
        """
        try:
            yield
        except sqlite3.Error as error:
            raise self._translate_error(path, error) from error
        except (InvalidOperation, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise self.damaged_error(path) from error
        except OSError as error:
            raise self._refusal_error(path, f"{error.strerror or error}") from error

    def damaged_error(self, path: Path) -> UserError:
        """Return the UserError for a damaged file, with the remedy."""
        return self._refusal_error(
            path,
            f"it is damaged. {self.way_out}; do not delete it: only the {self.kind}"
            f" knows {self.record}",
        )

    def _refusal_error(self, path: Path, words: str) -> UserError:
        return UserError(f"the {self.kind} {path}: {words}. Nothing was changed.")

    def _translate_error(self, path: Path, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None and "decode" in str(error):  # text that is no text any more
            return self.damaged_error(path)
        primary = -1 if code is None else code & 0xFF
        if primary in _DAMAGED:
            return self.damaged_error(path)
        if primary == sqlite3.SQLITE_BUSY:
            words = f"another process has kept it for over {BUSY_SECONDS:g} s; wait"
            return self._refusal_error(
                path, f"{words} until that is done and run again"
            )
        if primary in _ERROR_TEXTS:
            return self._refusal_error(path, _ERROR_TEXTS[primary])
        return InternalError(f"{self.kind} {path}: {error}")

    def _create(self, path: Path) -> None:
        """Create an empty file aside and link it to its name atomically."""
        if sqlite3.sqlite_version_info < (3, 37):
            words = "it needs SQLite 3.37 or later under Python"
            raise self._refusal_error(path, words)
        for leftover in journal_paths(path):
            words = f"it is missing but {leftover.name} is there. Put the {self.kind}"
            raise self._refusal_error(
                path, f"{words} back, or its latest backup without that file"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
            new = Path(folder) / path.name
            self._write_schema(new)
            try:
                os.link(new, path)
            except FileExistsError:
                return  # another process was first
        sync_folder(path.parent)

    def _write_schema(self, path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.executescript(
                f"""PRAGMA journal_mode = {self.journal};
                BEGIN;
                PRAGMA application_id = {self.application};
                PRAGMA user_version = {self.version};
                {self.schema}
                COMMIT;"""
            )
        path.chmod(0o600)  # it names clients, or holds the keys of invitations

    def _prepare_connection(self, db: sqlite3.Connection, path: Path) -> None:
        """Configure the connection; refuse another format, and a damaged file."""
        application, version = (
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        if application != self.application:
            raise self._refusal_error(
                path,
                "this file is empty, cut off or another application's. Name the right"
                f" file, or put the {self.kind}'s latest backup in its place",
            )
        if version > self.version:
            words = f"a newer curvote wrote it (format {version}, this one reads"
            raise self._refusal_error(path, f"{words} {self.version}); update curvote")
        if version != self.version or _schema_rows(db) != _stated_rows(self.schema):
            raise self.damaged_error(path)
        (mode,) = db.execute(f"PRAGMA journal_mode = {self.journal}").fetchone()
        if mode != self.journal.lower():
            raise self._refusal_error(
                path, "its file system allows no write-ahead log; use a local one"
            )
        for setting in _SETTINGS:
            db.execute(f"PRAGMA {setting}")
        # A checkpoint that met a full disk may leave a part of the last page, but then
        # the journal repairs it.
        (page,) = db.execute("PRAGMA page_size").fetchone()
        journal = Path(f"{path}-wal")
        pending = journal.is_file() and journal.stat().st_size > 0
        pending = pending or os.path.lexists(f"{path}-journal")
        is_truncated = not pending and path.stat().st_size % page != 0
        if is_truncated or not self._is_sound(db, path):
            raise self.damaged_error(path)

    def _is_sound(self, db: sqlite3.Connection, _: Path) -> bool:
        return db.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]


def format_backup_path(path: Path, version: int) -> Path:
    """Return the path of the backup made before a format change."""
    return path.with_name(f"{path.name}.format-{version}")


def journal_paths(path: Path) -> list[Path]:
    """Return the existing SQLite journals of the file at ``path``."""
    ends = (Path(f"{path}{end}") for end in ("-wal", "-journal"))
    return [journal for journal in ends if os.path.lexists(journal)]


def private_folder(path: Path) -> Path:
    """Create a folder that only its owner may open, and return it.

    One that is there and open to others is closed to them.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & OTHERS_MODE:
        path.chmod(0o700)
    return path


def file_mode(folder: Path) -> int:
    """Return the mode of a new file, private inside a private folder."""
    return 0o666 if folder.stat().st_mode & OTHERS_MODE else 0o600


def create_empty_file(path: Path) -> Path:
    """Create an empty file with its folder's `file_mode`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.close(os.open(path, flags, file_mode(path.parent)))
    return path


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _schema_rows(db: sqlite3.Connection) -> list[tuple[str, str | None]]:
    return db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


@cache
def _stated_rows(schema: str) -> list[tuple[str, str | None]]:
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(schema)
        return _schema_rows(model)
