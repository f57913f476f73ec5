"""Storage of an intake: one SQLite file, or a PostgreSQL database.

Both hold the same three tables and answer the same SQL, with ``?`` for each value; what
they do in their own way stands here and in `intake_postgres`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Protocol

from curvote.server.intake_file import INTAKE

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
    from curvote.server.intake_postgres import PostgresStore

    return PostgresStore(url)


def store_location(path: Path) -> str:
    """Return the intake's location for messages, without a secret."""
    return (
        f"the database of {URL_VARIABLE}" if os.environ.get(URL_VARIABLE) else str(path)
    )


def store_exists(path: Path) -> bool:
    """Return whether an intake exists, or a database for one is named."""
    return bool(os.environ.get(URL_VARIABLE)) or path.exists()
