"""Conversion of stage tables to Arrow and back, checked against declarations.

A vector is a ``fixed_size_list<double>[d]``, a matrix the same of its p q numbers, bits
are packed, text is dictionary-encoded. Each field says its kind, so that a file is read
without asking who made it.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
import pyarrow as pa

from curvote.base.errors import InternalError
from curvote.chain import stage
from curvote.chain.lookup import all_systems

_METADATA_KEY = b"curvote"
_SHARED_INDEX = -1  # the index of rows that all repetitions share
ColumnKind = tuple[Any, list[int]]  # a kind, and the shape of a row


def to_arrow(
    table: stage.Table, index: Sequence[str], place: stage.Place, columns: stage.Columns
) -> pa.RecordBatch:
    """Return one repetition of a table as Arrow, with its index columns.

    Wrong columns, unequal lengths, NaN, infinities or missing values: InternalError.
    """
    return merge_repetitions(table, index, [(place, columns)])


def merge_repetitions(
    table: stage.Table,
    index: Sequence[str],
    pieces: Sequence[tuple[stage.Place, stage.Columns]],
) -> pa.RecordBatch:
    """Return the rows of several repetitions, one after the other, as Arrow.

    Their columns must be of the same kinds of numbers (`same_kinds`).
    """
    completed = [
        _with_optional(table, index, place, columns) for place, columns in pieces
    ]
    counts = [len(columns[next(iter(table.columns))]) for columns in completed]
    shapes, arrays = [], []
    for number in range(len(index)):
        positions = [p[number] if number < len(p) else _SHARED_INDEX for p, _ in pieces]
        arrays.append(pa.array(np.repeat(positions, counts)))
    for column, kind in table.columns.items():
        parts = [columns[column] for columns in completed]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        array, shape = _to_array(f"{table.name}.{column}", kind, values)
        if array.null_count and column not in table.optional:
            raise InternalError(f"{table.name}.{column} has missing values")
        if len(array) != sum(counts):
            raise InternalError(f"{table.name}: columns of different lengths")
        shapes.append(tuple(shape))
        arrays.append(array)
    types = tuple(array.type for array in arrays)
    names = (*index, *table.columns)
    schema = _table_schema(names, types, tuple(table.columns.values()), tuple(shapes))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def same_kinds(first: stage.Columns, second: stage.Columns) -> bool:
    """Say whether the columns of two repetitions hold the same kinds of numbers."""
    return [(n, v.dtype, v.shape[1:]) for n, v in sorted(first.items())] == [
        (n, v.dtype, v.shape[1:]) for n, v in sorted(second.items())
    ]


def _with_optional(
    table: stage.Table, index: Sequence[str], place: stage.Place, columns: stage.Columns
) -> stage.Columns:
    """Return the columns of a repetition; absent optional ones are filled."""
    absent = set(table.optional) - set(columns)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InternalError(f"{table.name}: columns of different lengths")
    columns = columns | {column: np.full(max(lengths), None) for column in absent}
    if set(columns) != set(table.columns):
        raise InternalError(f"{table.name}: {sorted(columns)} are other columns")
    if place == stage.SHARED and index and not table.shared:
        raise InternalError(f"{table.name} must name its {index[0]}")
    return columns


@lru_cache(maxsize=256)
def _table_schema(
    names: tuple[str, ...],
    types: tuple[pa.DataType, ...],
    kinds: tuple[stage.Kind, ...],
    shapes: tuple[tuple[Any, ...], ...],
) -> pa.Schema:
    """Return the schema of a table: its index, and columns that say their kinds."""
    fields = [pa.field(*field) for field in zip(names, types, strict=True)]
    kinds_and_shapes = zip(kinds, shapes, strict=True)
    for number, (kind, shape) in enumerate(kinds_and_shapes, len(names) - len(kinds)):
        text = json.dumps({"kind": kind, "shape": shape}).encode()
        fields[number] = fields[number].with_metadata({_METADATA_KEY: text})
    return pa.schema(fields)


def _to_array(
    name: str, kind: stage.Kind, values: np.ndarray
) -> tuple[pa.Array, list[int]]:
    if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
        raise InternalError(f"{name} holds NaN or infinite values")
    shape = list(values.shape[1:])
    if kind in (stage.VECTOR, stage.MATRIX):
        numbers = pa.array(np.ascontiguousarray(values, dtype=np.float64).ravel())
        return pa.FixedSizeListArray.from_arrays(numbers, int(np.prod(shape))), shape
    if kind == stage.BITS:
        packed = np.packbits(values.astype(bool), axis=1)
        rows = [row.tobytes() for row in packed]
        return pa.array(rows, type=pa.binary(packed.shape[1])), shape
    if kind == stage.ROWS:
        if values.dtype.kind not in "iu":
            raise InternalError(f"{name} holds {values.dtype} values, no whole numbers")
        # Whole numbers of any width as the bytes of each row.
        flat = np.ascontiguousarray(values).reshape(len(values), -1)
        width, data = flat.shape[1] * flat.itemsize, pa.py_buffer(flat.tobytes())
        array = pa.Array.from_buffers(pa.binary(width), len(flat), [None, data])
        return array, [values.dtype.str, *shape]
    if kind == stage.TEXT:
        array = pa.array(values, type=pa.string()).dictionary_encode()
    elif kind == stage.FILE:
        array = pa.array(list(values), type=pa.large_binary())
    elif isinstance(kind, tuple):
        codes = pa.array(values.astype(np.int8))
        array = pa.DictionaryArray.from_arrays(codes, pa.array(kind))
    else:
        array = pa.array(values).cast(pa.type_for_alias(str(kind)))
    return array, shape


def to_columns(name: str, table: pa.Table) -> stage.Columns:
    """Return the columns of an Arrow table, without its index, as numpy."""
    kinds = column_kinds(name, table.schema)
    return as_numpy({column: table[column] for column in kinds}, kinds)


def as_numpy(
    columns: Mapping[str, pa.ChunkedArray], kinds: Mapping[str, ColumnKind]
) -> stage.Columns:
    """Return columns as numpy arrays: vectors (n, d), categories as codes."""
    return {name: _to_numpy(*kinds[name], values) for name, values in columns.items()}


def column_kinds(name: str, schema: pa.Schema) -> dict[str, ColumnKind]:
    """Return kind and shape of each column of a table, without its index."""
    kinds = {field.name: _stated_kind(field) for field in schema}
    if not any(kinds.values()):  # a frozen artifact of a version that wrote no kinds
        kinds = {field.name: _declared_kind(name, field) for field in schema}
    return {column: kind for column, kind in kinds.items() if kind is not None}


def column_kind(field: pa.Field) -> Any:
    """Return the kind that a field states; None: the field is an index."""
    stated_kind = _stated_kind(field)
    return None if stated_kind is None else stated_kind[0]


def _stated_kind(field: pa.Field) -> ColumnKind | None:
    """Return kind and shape that a field states; None: the field is an index."""
    metadata = (field.metadata or {}).get(_METADATA_KEY)
    return None if metadata is None else _parse_kind(metadata)


def _declared_kind(name: str, field: pa.Field) -> ColumnKind | None:
    """Return the kind that the declaration of a table gives a column."""
    table = _declared_tables().get(name)
    kind = table.columns.get(field.name) if table else None
    if kind is None:
        return None
    return kind, [field.type.list_size] if kind == stage.VECTOR else []


@cache
def _parse_kind(text: bytes) -> ColumnKind:
    entry = json.loads(text)
    kind = entry["kind"]
    return tuple(kind) if isinstance(kind, list) else kind, entry["shape"]


@cache
def _declared_tables() -> dict[str, stage.Table]:
    return {table.name: table for member in all_systems() for table in member.tables}


def _to_numpy(
    kind: stage.Kind, shape: list[int], column: pa.ChunkedArray
) -> np.ndarray:
    array = column.combine_chunks()
    if kind in (stage.VECTOR, stage.MATRIX):
        if array.null_count:
            return np.asarray(array.flatten().to_numpy()).reshape(-1, *shape)
        width = array.type.list_size  # `flatten` takes ten times as long
        numbers = array.values.slice(array.offset * width, len(array) * width)
        return np.asarray(numbers.to_numpy()).reshape(-1, *shape)
    if kind == stage.BITS:
        rows = _row_bytes(array)
        return np.unpackbits(rows, axis=1, count=shape[0]).astype(bool)
    if kind == stage.ROWS:
        dtype, *rest = cast("list[Any]", shape)
        numbers = _row_bytes(array).reshape(-1).view(np.dtype(dtype))
        return np.asarray(numbers.reshape(-1, *rest))
    if isinstance(kind, tuple):
        codes = {category: code for code, category in enumerate(kind)}
        words = array.dictionary.to_pylist()
        category_codes = np.array([codes[word] for word in words], np.int8)
        return np.asarray(category_codes[array.indices.to_numpy()])
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _row_bytes(array: pa.Array) -> np.ndarray:
    """Return the bytes (n, width) of an array of fixed-width values."""
    width = array.type.byte_width
    data = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    window = data[array.offset * width : (array.offset + len(array)) * width]
    return window.reshape(len(array), width)
