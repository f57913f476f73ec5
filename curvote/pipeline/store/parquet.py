"""Parquet files of tables: columns read by spans of rows, and files made of blocks."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, compress, groupby
from operator import itemgetter
from pathlib import Path
from threading import RLock
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curvote.base.durable import file_mode
from curvote.base.errors import InternalError
from curvote.base.object_store import open_source
from curvote.chain.stage import TEXT, Columns, Place
from curvote.pipeline.store import tables
from curvote.pipeline.store.arrow import ColumnKind, as_numpy, column_kind, column_kinds
from curvote.pipeline.store.tables import Span

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
            groups = range(metadata.num_row_groups)
            return [metadata.row_group(number).num_rows for number in groups]

    def columns(self, spans: Sequence[Span], only: Sequence[str] | None) -> Columns:
        """Return the columns of these rows, all or ``only`` some, as numpy arrays."""
        with _lock:
            names = [n for n in self._kinds if only is None or n in only]
            parts = [self._read_span(span, names) for span in spans]
            if len(parts) == 1:
                return as_numpy(parts[0], self._kinds)
            schema = self._open_file().schema_arrow
        pieces = [pa.table(part) for part in parts]
        empty = schema.empty_table().select(names)
        table = pa.concat_tables(pieces) if pieces else empty
        return as_numpy({name: table[name] for name in names}, self._kinds)

    @cached_property
    def _kinds(self) -> dict[str, ColumnKind]:
        return column_kinds(self.name, self._open_file().schema_arrow)

    def _read_span(
        self, span: Span, names: Sequence[str]
    ) -> dict[str, pa.ChunkedArray]:
        if span.rows < tables.SHARD < self._group_rows(span.group):  # before version 4
            table = pa.concat_tables(self._stream_span(span, names))
            return dict(zip(names, table.columns, strict=True))
        columns: dict[str, Any] = {
            name: _column_cache.get((*self._key, span.group, name)) for name in names
        }
        missing = [name for name, column in columns.items() if column is None]
        if missing:
            read = self._open_file().read_row_group
            table = read(span.group, columns=missing, use_threads=False)
            for name in missing:
                columns[name] = table[name]
                _column_cache.add((*self._key, span.group, name), table[name])
        return {n: column.slice(span.first, span.rows) for n, column in columns.items()}

    def _group_rows(self, group: int) -> int:
        return int(self._open_file().metadata.row_group(group).num_rows)

    def _stream_span(self, span: Span, names: Sequence[str]) -> Iterator[pa.Table]:
        """Yield rows of a row group that is too large to be decoded at once."""
        at, stop = 0, span.first + span.rows
        for batch in self._open_file().iter_batches(
            tables.SHARD, [span.group], list(names)
        ):
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


class HashingFile:
    """A new file that hashes what is written, and is durable when it is closed.

    ``bytes`` and ``sha256`` are those of all that was written. After an error it takes
    no more: a writer that ends itself later shall neither write nor fail again.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        self._handle = os.open(path, flags, file_mode(path.parent))
        self._digest, self.bytes = hashlib.sha256(), 0
        self.closed = False

    @property
    def sha256(self) -> str:
        """The digest of what was written, in hexadecimal."""
        return self._digest.hexdigest()

    def write(self, data: bytes) -> int:
        """Write all of ``data`` and return how many bytes that are."""
        if not self.closed:
            self._digest.update(data)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            self.bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: the file is closed with its block."""

    def __enter__(self) -> HashingFile:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self.closed = True
        try:
            if not failed:
                os.fsync(self._handle)
        finally:
            os.close(self._handle)


Batch = tuple[Place, pa.RecordBatch]
# Several repetitions share a row group up to these bytes, so that one is read quickly.
_MAX_GROUP_BYTES: Final = 8 << 20
# Bytes that a value of no fixed width is taken for.
_TEXT_BYTES: Final = 16
_FILE_BYTES: Final = 1 << 20


def merge_blocks(path: Path, batches: Iterable[Batch]) -> dict[str, Any]:
    """Write a table's file, durably; return its entry in the manifest.

    The entry tells for each run of rows whose they are (``places``), in which row group
    they stand (``groups``) and how many they are (``counts``).
    """
    runs: list[tuple[Place, int, int]] = []
    with HashingFile(path) as sink:
        writer: pq.ParquetWriter | None = None
        for number, group in enumerate(group_batches(batches)):
            table = _group_table(group)
            writer = writer or _parquet_writer(sink, table.schema)
            if not table.schema.equals(writer.schema, check_metadata=True):
                raise InternalError(f"{path.stem}: its blocks differ in their columns")
            writer.write_table(table, row_group_size=max(1, table.num_rows))
            by_place = groupby(group, key=itemgetter(0))
            runs += ((place, number, _count_batch_rows(run)) for place, run in by_place)
        if writer is None:
            raise InternalError(f"{path.stem}: no block holds it")
        writer.close()
    places, groups, counts = zip(*runs, strict=True)
    return {
        "rows": sum(counts),
        "bytes": sink.bytes,
        "sha256": sink.sha256,
        "places": places,
        "groups": groups,
        "counts": counts,
    }


def group_batches(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Yield the batches of each row group: as many whole repetitions as fit.

    The rows of a larger one stand alone, 65,536 in a group.
    """
    group: list[Batch] = []
    for place, place_batches in groupby(batches, key=itemgetter(0)):
        rest = (batch for _, batch in place_batches)
        parts: list[pa.RecordBatch] = []  # all of them, or until they exceed a shard
        while (
            sum(map(len, parts)) <= tables.SHARD
            and (part := next(rest, None)) is not None
        ):
            parts.append(part)
        rows = sum(map(len, parts))
        if group and _count_batch_rows(group) + rows > _max_group_rows(parts[0].schema):
            yield group
            group = []
        if rows > tables.SHARD:
            yield from _slice_batches(place, chain(parts, rest))
        else:
            group += [(place, part) for part in parts]
    if group:
        yield group


def _slice_batches(
    place: Place, batches: Iterable[pa.RecordBatch]
) -> Iterator[list[Batch]]:
    group: list[Batch] = []
    for batch in batches:
        at = 0
        while at < len(batch):
            part = batch.slice(at, tables.SHARD - _count_batch_rows(group))
            group.append((place, part))
            at += len(part)
            if _count_batch_rows(group) == tables.SHARD:
                yield group
                group = []
    if group:
        yield group


def _count_batch_rows(group: Iterable[Batch]) -> int:
    return sum(len(batch) for _, batch in group)


def _max_group_rows(schema: pa.Schema) -> int:
    """Return how many rows of several repetitions fit into one row group."""
    width = sum(_value_bytes(field.type) for field in schema)
    return min(tables.SHARD, _MAX_GROUP_BYTES // width)


def _value_bytes(kind: pa.DataType) -> int:
    """Return the bytes of a value of a type, estimated for texts and files."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _value_bytes(kind.value_type)
    if pa.types.is_large_binary(kind):
        return _FILE_BYTES
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _TEXT_BYTES


def _group_table(group: Iterable[Batch]) -> pa.Table:
    """Return a row group as one table, independent of its batches."""
    try:
        table = pa.Table.from_batches([batch for _, batch in group])
    except pa.ArrowInvalid as error:
        raise InternalError(f"blocks differ in their columns: {error}") from error
    for number, field in enumerate(table.schema):
        if column_kind(field) == TEXT:  # words in the order in which they stand here
            words = table.column(number).cast(pa.string()).combine_chunks()
            table = table.set_column(number, field, words.dictionary_encode())
    return table.combine_chunks()


def _parquet_writer(sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a Parquet writer with dictionaries for repeating columns only."""
    repeats = (not f.metadata or pa.types.is_dictionary(f.type) for f in schema)
    repeat = list(compress(schema.names, repeats))
    return pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        schema,
        use_dictionary=repeat or False,
        compression="none",
    )
