"""The tables of an artifact as stages read them: by repetition, column and shard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from curvote.chain.stage import SHARED, Columns, Place
from curvote.errors import InternalError, UserError
from curvote.run.store import spans
from curvote.run.store.reading import TableFile
from curvote.run.store.spans import Span, Spans, spans_of


class Tables(ABC):
    """A folder of tables with a manifest that says where each repetition stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stage, self.key = path.parent.name, path.name
        self._files: dict[str, TableFile] = {}
        self._found: dict[str, Spans] = {}

    @property
    @abstractmethod
    def manifest(self) -> dict[str, Any]:
        """Everything recorded at commit."""

    def file_of(self, table: str) -> Path:
        """Return the file of a table."""
        return self.path / f"{table}.parquet"

    def places(self, table: str) -> list[Place]:
        """Return the repetitions a table holds, in order; () is shared."""
        return list(self.stands(table))

    def columns(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Columns:
        """Return one repetition's columns; rows shared by all serve every one.

        Where ``only`` names some columns, no others are read.
        """
        return self._file(table).columns(self._standing(table, place), only)

    def count(self, table: str, place: Place) -> int:
        """Return how many shards the rows of one repetition are: at least one."""
        return spans.shards(self._standing(table, place))

    def shards(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Iterator[Columns]:
        """Yield one repetition's columns in order, 65,536 rows at a time.

        Where there is no row there is one shard, which is empty.
        """
        for number in range(self.count(table, place)):
            yield self.shard(table, place, number, only)

    def shard(
        self, table: str, place: Place, number: int, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the columns of one shard: rows from 65,536 ``number`` on."""
        standing = spans.shard(self._standing(table, place), number)
        return self._file(table).columns(standing, only)

    def _standing(self, table: str, place: Place) -> list[Span]:
        """Return where one repetition's rows stand, or those that all share."""
        known = self.stands(table)
        if SHARED not in known and place not in known:
            raise self._missing(table, place)
        return known[place if place in known else SHARED]

    def stands(self, table: str) -> Spans:
        """Return where in its file each repetition of a table stands, in order."""
        if table not in self._found:
            entry = self.manifest["tables"][table]
            self._found[table] = spans_of(entry, self._file(table).sizes)
        return self._found[table]

    def _file(self, table: str) -> TableFile:
        if table not in self._files:
            self._files[table] = TableFile(self.file_of(table))
        return self._files[table]

    def _missing(self, table: str, place: Place) -> Exception:
        if "places" in self.manifest["tables"][table]:
            return InternalError(f"{self.stage}: no repetition {place} in {table}")
        return UserError(
            f"artifact {self.path} was stored by an earlier version, in another order;"
            " run the pipeline again: it will be computed anew."
        )

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the rows that all repetitions share, 65,536 at a time."""
        yield from self.shards(table, SHARED)
