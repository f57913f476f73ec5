"""Where the intake keeps its rows: one SQLite file, or a PostgreSQL database.

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
URL: Final = "CURVOTE_INTAKE_URL"


class Base(Protocol):
    """The rows of an intake, for one thread.

    ``name`` says where they are, without a secret. ``sizes`` joins the sizes of batches
    to one text. What the database says is a UserError: it cannot be reached, is no
    intake, damaged or newer, has no room, or was kept by others for too long.
    """

    name: str
    sizes: str

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return what a query finds."""

    def each(self, change: str, values: Iterable[Sequence[Any]]) -> None:
        """Make a change for each set of values, in a transaction."""

    def writing(self) -> AbstractContextManager[None]:
        """One transaction: all of it, or nothing."""

    def errors(self) -> AbstractContextManager[None]:
        """Put into words what is wrong with the rows that were read."""

    def lock(self, invitations: Sequence[str]) -> None:
        """Keep others from these invitations, to the transaction's end."""

    def lock_round(self, round_id: str) -> None:
        """Keep others from accepting into a round, to the transaction's end."""

    def tidy(self) -> None:
        """Write all rows anew, by key: nothing is left of how they came."""

    def close(self) -> None:
        """Leave."""


class SQLiteBase:
    """The rows in one SQLite file, where one writer at a time is let in."""

    sizes = "group_concat(n)"

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self.db = INTAKE.connect(path)

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return what a query finds."""
        with self.errors():
            return self.db.execute(query, values).fetchall()

    def each(self, change: str, values: Iterable[Sequence[Any]]) -> None:
        """Make a change for each set of values."""
        with self.errors():
            self.db.executemany(change, values)

    def writing(self) -> AbstractContextManager[None]:
        """One transaction: all of it, or nothing."""
        return INTAKE.transaction(self.db, self.path, "IMMEDIATE")

    def errors(self) -> AbstractContextManager[None]:
        """Put into words what is wrong with the rows that were read."""
        return INTAKE.errors(self.path)

    def lock(self, invitations: Sequence[str]) -> None:
        """Do nothing: whoever writes is alone."""

    def lock_round(self, round_id: str) -> None:
        """Do nothing: whoever writes is alone."""

    def tidy(self) -> None:
        """Rewrite the file by key: no trace of arrival is left.

        SQLite puts a row where there is room on its page, so that places follow arrival
        until then. Whether or not anything changed: the last one may have been killed
        before this.
        """
        with self.errors():
            self.db.execute("VACUUM")
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Leave; the last one also removes the write-ahead log."""
        self.db.close()


def connect(path: Path) -> Base:
    """Return the rows at the database that the environment names, else at ``path``."""
    url = os.environ.get(URL)
    if not url:
        return SQLiteBase(path)
    from curvote.server.intake_postgres import PostgresBase

    return PostgresBase(url)


def where(path: Path) -> str:
    """Return where the intake is, for messages, without a secret."""
    return f"the database of {URL}" if os.environ.get(URL) else str(path)


def there(path: Path) -> bool:
    """Say whether there is an intake, or the place of one that others may fill."""
    return bool(os.environ.get(URL)) or path.exists()
