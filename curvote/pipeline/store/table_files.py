"""Files of tables: streams that compute their digest, and Parquet from blocks."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curvote.base.durable import file_mode
from curvote.base.errors import InternalError
from curvote.chain.stage import TEXT, Place
from curvote.pipeline.store.arrow import column_kind
from curvote.pipeline.store.tables import SHARD


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
            self._write_all(data)
            self.bytes += len(data)
        return len(data)

    def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._handle, rest) :]

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
            runs += ((place, number, rows) for place, rows in _repetition_runs(group))
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
        parts = _take_shard(rest)
        rows = sum(map(len, parts))
        if group and _count_batch_rows(group) + rows > _max_group_rows(parts[0].schema):
            yield group
            group = []
        if rows > SHARD:
            yield from _slice_batches(place, chain(parts, rest))
        else:
            group += [(place, part) for part in parts]
    if group:
        yield group


def _take_shard(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Take batches until there are none, or until they exceed a shard."""
    parts: list[pa.RecordBatch] = []
    while sum(map(len, parts)) <= SHARD and (batch := next(batches, None)) is not None:
        parts.append(batch)
    return parts


def _slice_batches(
    place: Place, batches: Iterable[pa.RecordBatch]
) -> Iterator[list[Batch]]:
    group: list[Batch] = []
    for batch in batches:
        at = 0
        while at < len(batch):
            part = batch.slice(at, SHARD - _count_batch_rows(group))
            group.append((place, part))
            at += len(part)
            if _count_batch_rows(group) == SHARD:
                yield group
                group = []
    if group:
        yield group


def _count_batch_rows(group: Iterable[Batch]) -> int:
    return sum(len(batch) for _, batch in group)


def _max_group_rows(schema: pa.Schema) -> int:
    """Return how many rows of several repetitions fit into one row group."""
    width = sum(_value_bytes(field.type) for field in schema)
    return min(SHARD, _MAX_GROUP_BYTES // width)


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


def _repetition_runs(group: Iterable[Batch]) -> Iterator[tuple[Place, int]]:
    """Yield place and number of rows of each run of a row group."""
    for place, place_batches in groupby(group, key=itemgetter(0)):
        yield place, _count_batch_rows(place_batches)


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
    repeat = [
        f.name for f in schema if not f.metadata or pa.types.is_dictionary(f.type)
    ]
    return pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        schema,
        use_dictionary=repeat or False,
        compression="none",
    )
