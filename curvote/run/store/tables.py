"""Tables of an artifact as stages read them: by repetition, column and shard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from curvote.chain.stage import SHARED, Columns, Place
from curvote.errors import InternalError, UserError
from curvote.run.store import spans
from curvote.run.store.reading import TableFile
from curvote.run.store.spans import Span, Spans, read_spans


class Tables(ABC):
    """A folder of tables with a manifest that says where each repetition stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stage, self.key = path.parent.name, path.name
        self._files: dict[str, TableFile] = {}
        self._spans: dict[str, Spans] = {}

    @property
    @abstractmethod
    def manifest(self) -> dict[str, Any]:
        """Everything recorded at commit."""

    def table_path(self, table: str) -> Path:
        """Return the path of a table's file."""
        return self.path / f"{table}.parquet"

    def places(self, table: str) -> list[Place]:
        """Return the repetitions a table holds, in order; () is shared."""
        return list(self.spans_by_repetition(table))

    def columns(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Columns:
        """Return one repetition's columns; rows shared by all serve every one.

        Where ``only`` names some columns, no others are read.
        """
        return self._table_file(table).columns(
            self._repetition_spans(table, place), only
        )

    def count(self, table: str, place: Place) -> int:
        """Return the number of shards of one repetition: at least one."""
        return spans.count_shards(self._repetition_spans(table, place))

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
        rows = spans.shard_spans(self._repetition_spans(table, place), number)
        return self._table_file(table).columns(rows, only)

    def _repetition_spans(self, table: str, place: Place) -> list[Span]:
        """Return the spans of one repetition, or those of shared rows."""
        by_place = self.spans_by_repetition(table)
        if SHARED not in by_place and place not in by_place:
            raise self._missing_repetition(table, place)
        return by_place[place if place in by_place else SHARED]

    def spans_by_repetition(self, table: str) -> Spans:
        """Return the spans of each repetition of a table, in order."""
        if table not in self._spans:
            entry = self.manifest["tables"][table]
            self._spans[table] = read_spans(entry, self._table_file(table).group_sizes)
        return self._spans[table]

    def _table_file(self, table: str) -> TableFile:
        if table not in self._files:
            self._files[table] = TableFile(self.table_path(table))
        return self._files[table]

    def _missing_repetition(self, table: str, place: Place) -> Exception:
        if "places" in self.manifest["tables"][table]:
            return InternalError(f"{self.stage}: no repetition {place} in {table}")
        return UserError(
            f"artifact {self.path} was stored by an earlier version, in another order;"
            " run the pipeline again: it will be computed anew."
        )

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the rows that all repetitions share, 65,536 at a time."""
        yield from self.shards(table, SHARED)
