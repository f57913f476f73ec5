"""Finished blocks as one Parquet file a table, the same from any blocks.

Blocks hold a batch for each repetition or part of one, in the order of the table. They
are streamed into row groups whose places follow from the rows alone, so neither workers
nor the size of a block shows, and memory is bounded by a row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curvote.chain.stage import Place
from curvote.chain.tables import TEXT
from curvote.errors import InternalError
from curvote.run.store.arrow import kind_of
from curvote.run.store.hashed import Hashed
from curvote.run.store.spans import SHARD

Batch = tuple[Place, pa.RecordBatch]
# Several repetitions share a row group up to these bytes, so that one is read quickly.
_BYTES: Final = 8 << 20
# Bytes that a value of no fixed width is taken for.
_TEXT: Final = 16
_FILE: Final = 1 << 20


def merge(path: Path, batches: Iterable[Batch]) -> dict[str, Any]:
    """Write a table's file and make it durable; return what the manifest says of it.

    The entry tells for each run of rows whose they are (``places``), in which row group
    they stand (``groups``) and how many they are (``counts``).
    """
    runs: list[tuple[Place, int, int]] = []
    with Hashed(path) as sink:
        writer: pq.ParquetWriter | None = None
        for number, group in enumerate(grouped(batches)):
            table = _table(group)
            writer = writer or _writer(sink, table.schema)
            _write(writer, table, path)
            runs += ((place, number, rows) for place, rows in _runs(group))
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


def _write(writer: pq.ParquetWriter, table: pa.Table, path: Path) -> None:
    if not table.schema.equals(writer.schema, check_metadata=True):
        raise InternalError(f"{path.stem}: its blocks differ in their columns")
    writer.write_table(table, row_group_size=max(1, table.num_rows))


def grouped(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Yield what stands in each row group: whole repetitions together, as many as fit.

    The rows of a larger one stand alone, 65,536 in a group.
    """
    held: list[Batch] = []
    for place, own in groupby(batches, key=itemgetter(0)):
        rest = (batch for _, batch in own)
        parts = _first(rest)
        rows = sum(map(len, parts))
        if held and _rows(held) + rows > _most(parts[0].schema):
            yield held
            held = []
        if rows > SHARD:
            yield from _sliced(place, chain(parts, rest))
        else:
            held += [(place, part) for part in parts]
    if held:
        yield held


def _first(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Take batches until there are none, or more rows than a shard has."""
    parts: list[pa.RecordBatch] = []
    while sum(map(len, parts)) <= SHARD and (batch := next(batches, None)) is not None:
        parts.append(batch)
    return parts


def _sliced(place: Place, batches: Iterable[pa.RecordBatch]) -> Iterator[list[Batch]]:
    held: list[Batch] = []
    for batch in batches:
        at = 0
        while at < len(batch):
            part = batch.slice(at, SHARD - _rows(held))
            held.append((place, part))
            at += len(part)
            if _rows(held) == SHARD:
                yield held
                held = []
    if held:
        yield held


def _rows(held: Iterable[Batch]) -> int:
    return sum(len(batch) for _, batch in held)


def _most(schema: pa.Schema) -> int:
    """Return how many rows several repetitions may fill in one row group."""
    width = sum(_width(field.type) for field in schema)
    return min(SHARD, _BYTES // width)


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a value, or what they are taken for."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    if pa.types.is_large_binary(kind):
        return _FILE
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _TEXT


def _runs(group: Iterable[Batch]) -> Iterator[tuple[Place, int]]:
    """Yield whose rows follow each other in a row group, and how many."""
    for place, own in groupby(group, key=itemgetter(0)):
        yield place, _rows(own)


def _table(group: Iterable[Batch]) -> pa.Table:
    """Return a row group in one piece: pages must not depend on how it was made."""
    try:
        table = pa.Table.from_batches([batch for _, batch in group])
    except pa.ArrowInvalid as error:
        raise InternalError(f"blocks differ in their columns: {error}") from error
    for number, field in enumerate(table.schema):
        if kind_of(field) == TEXT:  # words in the order in which they stand here
            words = table.column(number).cast(pa.string()).combine_chunks()
            table = table.set_column(number, field, words.dictionary_encode())
    return table.combine_chunks()


def _writer(sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer: doubles do not repeat, and noise cannot be compressed."""
    repeat = [
        f.name for f in schema if not f.metadata or pa.types.is_dictionary(f.type)
    ]
    return pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        schema,
        use_dictionary=repeat or False,
        compression="none",
    )
