"""The first replicates of a stored table, as the blocks that made them held them.

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

from curvote.run.places import source
from curvote.run.store.arrow import kind_of
from curvote.run.store.artifacts import Artifact
from curvote.run.store.merging import Batch


def first(artifact: Artifact, table: str, count: int) -> Iterator[Batch]:
    """Yield the rows of the first ``count`` replicates, a row group held at a time."""
    with pq.ParquetFile(source(artifact.file_of(table))) as file:
        schema, held = _written(file), -1
        for place, spans in artifact.stands(table).items():
            if place[0] >= count:
                return
            for group, start, rows in spans:
                if group != held:
                    batch, held = _restored(file, group, schema), group
                yield place, batch.slice(start, rows)


def _written(file: pq.ParquetFile) -> pa.Schema:
    """Return the schema that was written: the reader's own differs from it."""
    told = file.metadata.metadata[b"ARROW:schema"]
    return pa.ipc.read_schema(pa.py_buffer(b64decode(told)))


def _restored(file: pq.ParquetFile, group: int, schema: pa.Schema) -> pa.RecordBatch:
    table = file.read_row_group(group, use_threads=False)
    arrays = [_as(field, table.column(field.name).combine_chunks()) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as(field: pa.Field, values: pa.Array) -> pa.Array:
    kind = kind_of(field)
    if isinstance(kind, tuple):
        words = pa.array(kind)
        codes = pc.index_in(values.cast(pa.string()), value_set=words)
        codes = codes.cast(field.type.index_type)
        return pa.DictionaryArray.from_arrays(codes, words)
    if pa.types.is_fixed_size_list(field.type):
        return pa.FixedSizeListArray.from_arrays(values.flatten(), type=field.type)
    return values.cast(field.type)
