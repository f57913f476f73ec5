"""Tables of an artifact: spans of rows, Parquet files, reading by repetition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from curvote.base.errors import InternalError, UserError
from curvote.chain.stage import SHARED, Columns, Place
from curvote.chain.streams import CLIENT_BLOCK
from curvote.pipeline.store.arrow import ColumnKind, as_numpy, column_kinds
from curvote.pipeline.store.locations import open_source

# Rows that are read together at most, and the most that a row group holds.
SHARD = CLIENT_BLOCK


class Span(NamedTuple):
    """A span of rows in one row group: ``rows`` of them from ``first`` on."""

    group: int
    first: int
    rows: int


Spans = dict[Place, list[Span]]


def read_spans(entry: Mapping[str, Any], sizes: Callable[[], Sequence[int]]) -> Spans:
    """Return the spans of each repetition, from a table's manifest entry.

    ``sizes`` returns the rows of each row group of the file. Before version 4 a row
    group held one repetition, in version 2 as a number: -1 is what all share.
    """
    if "groups" in entry:
        entries = zip(entry["places"], entry["groups"], entry["counts"], strict=True)
        return _collect_spans(entries)
    places = entry.get("places")
    if places is None:
        places = [() if number == -1 else (number,) for number in entry["replicates"]]
    return _collect_spans(
        (place, group, rows)
        for group, (place, rows) in enumerate(zip(places, sizes(), strict=True))
    )


def _collect_spans(entries: Iterable[tuple[Sequence[int], int, int]]) -> Spans:
    spans: Spans = {}
    first, last = 0, -1
    for place, group, rows in entries:
        first = first if group == last else 0
        spans.setdefault(tuple(place), []).append(Span(group, first, rows))
        first, last = first + rows, group
    return spans


def count_shards(spans: Sequence[Span]) -> int:
    """Return the number of shards: at least one, which may be empty."""
    rows = sum(span.rows for span in spans)
    return max(1, -(-rows // SHARD))


def shard_spans(spans: Sequence[Span], number: int) -> list[Span]:
    """Return the spans of shard ``number``: 65,536 rows of a repetition."""
    return list(_slice_spans(spans, number * SHARD, (number + 1) * SHARD))


def _slice_spans(spans: Sequence[Span], start: int, stop: int) -> Iterator[Span]:
    """Yield the spans of rows [start, stop) of several spans."""
    at = 0
    for span in spans:
        low, high = max(start, at), min(stop, at + span.rows)
        if low < high:
            yield Span(span.group, span.first + low - at, high - low)
        at += span.rows


_MAX_OPEN_FILES: Final = 32
_MAX_CACHED_BYTES: Final = 64 << 20
_lock = RLock()  # neither the files nor what is kept are safe in several threads
Stamp = tuple[int, int, int]
ColumnKey = tuple[Path, Stamp, int, str]
_files: OrderedDict[tuple[Path, Stamp], pq.ParquetFile] = OrderedDict()


def clear_cache() -> None:
    """Close the cached files, and drop the cached columns."""
    with _lock:
        _column_cache.clear()
        while _files:
            _files.popitem()[1].close()


class TableFile:
    """One table of an artifact, as its file stood when this object was made."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        stat_result = path.stat()
        stamp = (stat_result.st_ino, stat_result.st_mtime_ns, stat_result.st_size)
        self._key = path, stamp

    def group_sizes(self) -> list[int]:
        """Return the number of rows of each row group."""
        with _lock:
            metadata = self._open_file().metadata
            return [
                metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)
            ]

    def columns(self, spans: Sequence[Span], only: Sequence[str] | None) -> Columns:
        """Return the columns of these rows, all or ``only`` some, as numpy arrays."""
        with _lock:
            names = [n for n in self._kinds if only is None or n in only]
            parts = [self._read_span(span, names) for span in spans]
            if len(parts) == 1:
                return as_numpy(parts[0], self._kinds)
            schema = self._open_file().schema_arrow
        tables = [pa.table(part) for part in parts]
        empty = schema.empty_table().select(names)
        table = pa.concat_tables(tables) if tables else empty
        return as_numpy({name: table[name] for name in names}, self._kinds)

    @cached_property
    def _kinds(self) -> dict[str, ColumnKind]:
        return column_kinds(self.name, self._open_file().schema_arrow)

    def _read_span(
        self, span: Span, names: Sequence[str]
    ) -> dict[str, pa.ChunkedArray]:
        if span.rows < SHARD < self._group_rows(span.group):  # before version 4
            table = pa.concat_tables(self._stream_span(span, names))
            return dict(zip(names, table.columns, strict=True))
        cached = {
            name: _column_cache.get((*self._key, span.group, name)) for name in names
        }
        missing = [name for name, column in cached.items() if column is None]
        columns: dict[str, Any] = cached | self._decode_group(span.group, missing)
        return {n: column.slice(span.first, span.rows) for n, column in columns.items()}

    def _group_rows(self, group: int) -> int:
        return int(self._open_file().metadata.row_group(group).num_rows)

    def _decode_group(
        self, group: int, names: Sequence[str]
    ) -> dict[str, pa.ChunkedArray]:
        if not names:
            return {}
        table = self._open_file().read_row_group(
            group, columns=names, use_threads=False
        )
        decoded = {name: table[name] for name in names}
        for name, column in decoded.items():
            _column_cache.add((*self._key, group, name), column)
        return decoded

    def _stream_span(self, span: Span, names: Sequence[str]) -> Iterator[pa.Table]:
        """Yield rows of a row group that is too large to be decoded at once."""
        at, stop = 0, span.first + span.rows
        batches = self._open_file().iter_batches(SHARD, [span.group], list(names))
        for batch in batches:
            low, high = max(span.first - at, 0), min(stop - at, len(batch))
            if low < high:
                yield pa.Table.from_batches([batch.slice(low, high - low)])
            at += len(batch)
            if at >= stop:
                return

    def _open_file(self) -> pq.ParquetFile:
        if self._key not in _files:
            _files[self._key] = pq.ParquetFile(open_source(self._key[0]))
            if len(_files) > _MAX_OPEN_FILES:
                _files.popitem(last=False)[1].close()
        _files.move_to_end(self._key)
        return _files[self._key]


class _ColumnCache:
    """A cache of decoded columns, bounded in bytes; the oldest go first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._total_bytes = max_bytes, 0
        self._columns: OrderedDict[ColumnKey, pa.ChunkedArray] = OrderedDict()

    def get(self, key: ColumnKey) -> pa.ChunkedArray | None:
        """Return a cached column; None: it is not cached."""
        if key in self._columns:
            self._columns.move_to_end(key)
        return self._columns.get(key)

    def add(self, key: ColumnKey, column: pa.ChunkedArray) -> None:
        """Cache a column, and drop those that were not used for longest."""
        self._columns[key] = column
        self._total_bytes += column.nbytes
        while self._total_bytes > self._max_bytes:
            self._total_bytes -= self._columns.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        """Drop all columns."""
        self._columns.clear()
        self._total_bytes = 0


_column_cache = _ColumnCache(_MAX_CACHED_BYTES)


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
        return count_shards(self._repetition_spans(table, place))

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
        rows = shard_spans(self._repetition_spans(table, place), number)
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
