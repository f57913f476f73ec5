"""Parquet files of tables, read by column and row group through a bounded cache.

What this process has opened and decoded last is kept, within bounds: cells of one stage
read the same repetitions, and repetitions share row groups.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curvote.chain.stage import Columns
from curvote.run.places import open_source
from curvote.run.store.arrow import ColumnKind, as_numpy, column_kinds
from curvote.run.store.spans import SHARD, Span

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
