"""Tables of a stage as Arrow tables and back, checked against what they declare.

A vector is a ``fixed_size_list<double>[d]``, a matrix the same of its p q numbers, bits
are packed, text is dictionary-encoded. Each field says its kind, so that a file is read
without asking who made it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
import pyarrow as pa

from curvote.chain.lookup import systems
from curvote.chain.stage import SHARED, Columns, Place
from curvote.chain.tables import (
    BITS,
    FILE,
    MATRIX,
    ROWS,
    TEXT,
    VECTOR,
    Kind,
    Table,
)
from curvote.errors import InternalError

_META = b"curvote"
_NOBODY = -1  # the index of rows that all repetitions share
Told = tuple[Any, list[int]]  # a kind, and the shape of a row


def to_arrow(
    table: Table, index: Sequence[str], place: Place, columns: Columns
) -> pa.RecordBatch:
    """Return one repetition of a table, with a column for each part of the index.

    Wrong columns, unequal lengths, NaN, infinities or missing values: InternalError.
    """
    return together(table, index, [(place, columns)])


def together(
    table: Table, index: Sequence[str], pieces: Sequence[tuple[Place, Columns]]
) -> pa.RecordBatch:
    """Return the rows of several repetitions one after the other, as `to_arrow` does.

    Their columns must be of the same kinds of numbers (`alike`).
    """
    every = [_complete(table, index, place, columns) for place, columns in pieces]
    counts = [len(columns[next(iter(table.columns))]) for columns in every]
    shapes, arrays = [], []
    for number in range(len(index)):
        at = [p[number] if number < len(p) else _NOBODY for p, _ in pieces]
        arrays.append(pa.array(np.repeat(at, counts)))
    for column, kind in table.columns.items():
        parts = [columns[column] for columns in every]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        array, shape = _array(f"{table.name}.{column}", kind, values)
        _check(table, column, array, sum(counts))
        shapes.append(tuple(shape))
        arrays.append(array)
    types = tuple(array.type for array in arrays)
    names = (*index, *table.columns)
    kinds = tuple(table.columns.values())
    schema = _schema(names, types, kinds, tuple(shapes))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def alike(one: Columns, other: Columns) -> bool:
    """Say whether the columns of two repetitions hold the same kinds of numbers."""
    return [(n, v.dtype, v.shape[1:]) for n, v in sorted(one.items())] == [
        (n, v.dtype, v.shape[1:]) for n, v in sorted(other.items())
    ]


def _complete(
    table: Table, index: Sequence[str], place: Place, columns: Columns
) -> Columns:
    """Return the columns of a repetition with what is optional and not there."""
    absent = set(table.optional) - set(columns)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InternalError(f"{table.name}: columns of different lengths")
    columns = columns | {column: np.full(max(lengths), None) for column in absent}
    if set(columns) != set(table.columns):
        raise InternalError(f"{table.name}: {sorted(columns)} are other columns")
    if place == SHARED and index and not table.shared:
        raise InternalError(f"{table.name} must name its {index[0]}")
    return columns


@lru_cache(maxsize=256)
def _schema(
    names: tuple[str, ...],
    types: tuple[pa.DataType, ...],
    kinds: tuple[Kind, ...],
    shapes: tuple[tuple[Any, ...], ...],
) -> pa.Schema:
    """Return the schema of a table: its index, and columns that say their kinds."""
    index = len(names) - len(kinds)
    told = [
        {_META: json.dumps({"kind": kind, "shape": shape}).encode()}
        for kind, shape in zip(kinds, shapes, strict=True)
    ]
    fields = [pa.field(*field) for field in zip(names, types, strict=True)]
    for number, metadata in enumerate(told, start=index):
        fields[number] = fields[number].with_metadata(metadata)
    return pa.schema(fields)


def _check(table: Table, column: str, array: pa.Array, rows: int) -> None:
    if array.null_count and column not in table.optional:
        raise InternalError(f"{table.name}.{column} has missing values")
    if len(array) != rows:
        raise InternalError(f"{table.name}: columns of different lengths")


def _array(name: str, kind: Kind, values: np.ndarray) -> tuple[pa.Array, list[int]]:
    if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
        raise InternalError(f"{name} holds NaN or infinite values")
    shape = list(values.shape[1:])
    if kind in (VECTOR, MATRIX):
        flat = pa.array(np.ascontiguousarray(values, dtype=np.float64).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, int(np.prod(shape))), shape
    if kind == BITS:
        packed = np.packbits(values.astype(bool), axis=1)
        rows = [row.tobytes() for row in packed]
        return pa.array(rows, type=pa.binary(packed.shape[1])), shape
    if kind == ROWS:
        return _rows_array(name, values), [values.dtype.str, *shape]
    return _cells(kind, values), shape


def _cells(kind: Kind, values: np.ndarray) -> pa.Array:
    if kind == TEXT:
        return pa.array(values, type=pa.string()).dictionary_encode()
    if kind == FILE:
        return pa.array(list(values), type=pa.large_binary())
    if isinstance(kind, tuple):
        codes = pa.array(values.astype(np.int8))
        return pa.DictionaryArray.from_arrays(codes, pa.array(kind))
    return pa.array(values).cast(pa.type_for_alias(str(kind)))


def _rows_array(name: str, values: np.ndarray) -> pa.Array:
    """Return whole numbers as the bytes of each row, of whatever kind they are."""
    if values.dtype.kind not in "iu":
        raise InternalError(f"{name} holds {values.dtype} values, no whole numbers")
    rows = np.ascontiguousarray(values).reshape(len(values), -1)
    width = rows.shape[1] * rows.itemsize
    data = pa.py_buffer(rows.tobytes())
    return pa.Array.from_buffers(pa.binary(width), len(rows), [None, data])


def to_columns(name: str, table: pa.Table) -> Columns:
    """Return the columns of a table, but its index, as `as_numpy` does."""
    kinds = kinds_of(name, table.schema)
    return as_numpy({column: table[column] for column in kinds}, kinds)


def as_numpy(
    columns: Mapping[str, pa.ChunkedArray], kinds: Mapping[str, Told]
) -> Columns:
    """Return columns as numpy arrays: vectors (n, d), categories as codes."""
    return {name: _numpy(*kinds[name], values) for name, values in columns.items()}


def kinds_of(name: str, schema: pa.Schema) -> dict[str, Told]:
    """Return kind and shape of each column of a table, but of parts of the index."""
    told = {field.name: _told(field) for field in schema}
    if not any(told.values()):  # a frozen artifact of a version that wrote no kinds
        told = {field.name: _known(name, field) for field in schema}
    return {column: found for column, found in told.items() if found is not None}


def kind_of(field: pa.Field) -> Any:
    """Return the kind that a field says it has; None for a part of the index."""
    told = _told(field)
    return None if told is None else told[0]


def _told(field: pa.Field) -> Told | None:
    """Return what a field says of its column; nothing if it is part of the index."""
    told = (field.metadata or {}).get(_META)
    return None if told is None else _parsed(told)


def _known(name: str, field: pa.Field) -> Told | None:
    """Return what the table of this name declares of a column."""
    table = _declared().get(name)
    kind = table.columns.get(field.name) if table else None
    if kind is None:
        return None
    return kind, [field.type.list_size] if kind == VECTOR else []


@cache
def _parsed(text: bytes) -> Told:
    told = json.loads(text)
    kind = told["kind"]
    return tuple(kind) if isinstance(kind, list) else kind, told["shape"]


@cache
def _declared() -> dict[str, Table]:
    return {table.name: table for one in systems() for table in one.tables}


def _numpy(kind: Kind, shape: list[int], column: pa.ChunkedArray) -> np.ndarray:
    array = column.combine_chunks()
    if kind in (VECTOR, MATRIX):
        return np.asarray(array.flatten().to_numpy()).reshape(-1, *shape)
    if kind == BITS:
        rows = _bytes(array)
        return np.unpackbits(rows, axis=1, count=shape[0]).astype(bool)
    if kind == ROWS:
        dtype, *rest = cast("list[Any]", shape)
        numbers = _bytes(array).reshape(-1).view(np.dtype(dtype))
        return np.asarray(numbers.reshape(-1, *rest))
    if isinstance(kind, tuple):
        codes = {category: code for code, category in enumerate(kind)}
        found = np.array([codes[c] for c in array.dictionary.to_pylist()], np.int8)
        return np.asarray(found[array.indices.to_numpy()])
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _bytes(array: pa.Array) -> np.ndarray:
    """Return the bytes of each value of one width, a row each."""
    width = array.type.byte_width
    data = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    whole = data[array.offset * width : (array.offset + len(array)) * width]
    return whole.reshape(len(array), width)
