"""Replicates of an earlier study, reused when their number changes.

What reads Parquet turns the codes of categories into 32-bit numbers of another
dictionary and names the parts of a vector anew: rows get the types back with which they
were written, so that a file made of them is the same as one made from nothing.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curvote.run.places import open_source
from curvote.run.store.arrow import column_kind
from curvote.run.store.artifacts import Artifact
from curvote.run.store.merging import Batch


def first_replicates(artifact: Artifact, table: str, count: int) -> Iterator[Batch]:
    """Yield place and rows of the first ``count`` replicates of a table."""
    with pq.ParquetFile(open_source(artifact.table_path(table))) as file:
        schema, current = _written_schema(file), -1
        for place, spans in artifact.spans_by_repetition(table).items():
            if place[0] >= count:
                return
            for group, start, rows in spans:
                if group != current:
                    batch, current = _restore_group(file, group, schema), group
                yield place, batch.slice(start, rows)


def _written_schema(file: pq.ParquetFile) -> pa.Schema:
    """Return the schema with which a file was written."""
    encoded = file.metadata.metadata[b"ARROW:schema"]
    return pa.ipc.read_schema(pa.py_buffer(b64decode(encoded)))


def _restore_group(
    file: pq.ParquetFile, group: int, schema: pa.Schema
) -> pa.RecordBatch:
    table = file.read_row_group(group, use_threads=False)
    arrays = [
        _restore_column(field, table.column(field.name).combine_chunks())
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _restore_column(field: pa.Field, values: pa.Array) -> pa.Array:
    kind = column_kind(field)
    if isinstance(kind, tuple):
        words = pa.array(kind)
        codes = pc.index_in(values.cast(pa.string()), value_set=words)
        codes = codes.cast(field.type.index_type)
        return pa.DictionaryArray.from_arrays(codes, words)
    if pa.types.is_fixed_size_list(field.type):
        return pa.FixedSizeListArray.from_arrays(values.flatten(), type=field.type)
    return values.cast(field.type)
