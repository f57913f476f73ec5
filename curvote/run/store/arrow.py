"""Tables of a stage as Arrow tables and back, checked against what they declare.

A vector is a ``fixed_size_list<double>[d]``, a matrix the same of its p q numbers, bits
are packed, text is dictionary-encoded. Each field says its kind, so that a file is read
without asking who made it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
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
    rows = len(next(iter(columns.values())))
    absent = set(table.optional) - set(columns)
    columns = columns | {column: np.full(rows, None) for column in absent}
    if set(columns) != set(table.columns):
        raise InternalError(f"{table.name}: {sorted(columns)} are other columns")
    if place == SHARED and index and not table.shared:
        raise InternalError(f"{table.name} must name its {index[0]}")
    fields, arrays = [], []
    for number, name in enumerate(index):
        at = place[number] if number < len(place) else _NOBODY
        fields.append(pa.field(name, pa.int64()))
        arrays.append(pa.array(np.full(rows, at)))
    for column, kind in table.columns.items():
        array, shape = _array(f"{table.name}.{column}", kind, columns[column])
        _check(table, column, array, rows)
        told = json.dumps({"kind": kind, "shape": shape}).encode()
        fields.append(pa.field(column, array.type, metadata={_META: told}))
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


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


def to_columns(
    name: str, table: pa.Table, kinds: Mapping[str, Told] | None = None
) -> Columns:
    """Return the columns as numpy arrays: vectors (n, d), categories as codes."""
    known = kinds_of(name, table.schema) if kinds is None else kinds
    return {
        column: _numpy(*known[column], table[column])
        for column in table.column_names
        if column in known
    }


def kinds_of(name: str, schema: pa.Schema) -> dict[str, Told]:
    """Return kind and shape of each column of a table, but of parts of the index."""
    told = {field.name: _told(name, field) for field in schema}
    return {column: found for column, found in told.items() if found[0] is not None}


def _told(name: str, field: pa.Field) -> Told:
    """Return kind and shape of a column; no kind for a part of the index."""
    if field.metadata and _META in field.metadata:
        return _parsed(field.metadata[_META])
    # A frozen artifact of a version that wrote no kinds.
    known = _declared().get(name)
    kind = known.columns.get(field.name) if known else None
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
        packed = np.frombuffer(b"".join(array.to_pylist()), np.uint8)
        rows = packed.reshape(-1, array.type.byte_width)
        return np.unpackbits(rows, axis=1, count=shape[0]).astype(bool)
    if kind == ROWS:
        dtype, *rest = cast("list[Any]", shape)
        data = b"".join(array.to_pylist())
        return np.frombuffer(data, np.dtype(dtype)).reshape(-1, *rest)
    if isinstance(kind, tuple):
        codes = {category: code for code, category in enumerate(kind)}
        found = np.array([codes[c] for c in array.dictionary.to_pylist()], np.int8)
        return np.asarray(found[array.indices.to_numpy()])
    return np.asarray(array.to_numpy(zero_copy_only=False))
