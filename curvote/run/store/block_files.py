"""Blocks of repetitions: Arrow files of one block, and computation by an engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from curvote.chain.stage import Columns, Place
from curvote.chain.tables import Table
from curvote.durable import create_empty_file
from curvote.errors import InternalError
from curvote.run.store.arrow import merge_repetitions, same_kinds
from curvote.run.store.merging import Batch
from curvote.run.store.spans import SHARD

_BUFFER: Final = 1 << 20
_METADATA_KEY: Final = "curvote"  # whose the rows of a batch are, and how many


class BlockWriter:
    """A writer of one block: an Arrow file for each table.

    Small repetitions are turned into one batch: that costs as much as a single one.
    """

    def __init__(
        self, folder: Path, tables: Sequence[Table], index: tuple[str, ...]
    ) -> None:
        self._folder, self._index = folder, index
        self._tables = {table.name: table for table in tables}
        self._buffered: dict[str, list[tuple[Place, Columns]]] = {}
        self._writers: dict[str, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> BlockWriter:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        with self._stack:
            if not failed:
                for name in self._buffered:
                    self._flush_table(name)

    @property
    def missing_tables(self) -> list[str]:
        """The tables to which nothing was added."""
        return sorted(self._tables.keys() - self._buffered.keys())

    def add_rows(self, table: str, place: Place, columns: Columns) -> None:
        """Add rows of a repetition to a table; an undeclared one: InternalError."""
        if table not in self._tables:
            raise InternalError(f"{self._folder.parent.name} has no table {table}")
        buffered = self._buffered.setdefault(table, [])
        if buffered and not same_kinds(buffered[-1][1], columns):
            self._flush_table(table)
        buffered.append((place, columns))
        if sum(_count_rows(columns) for _, columns in buffered) > SHARD:
            self._flush_table(table)

    def _flush_table(self, name: str) -> None:
        pieces = self._buffered[name]
        if not pieces:
            return
        batch = merge_repetitions(self._tables[name], self._index, pieces)
        counts = json.dumps(
            [(place, _count_rows(columns)) for place, columns in pieces]
        )
        pieces.clear()
        if name not in self._writers:
            self._writers[name] = self._open_writer(name, batch.schema)
        try:
            self._writers[name].write_batch(batch, {_METADATA_KEY: counts})
        except pa.ArrowInvalid as error:
            raise InternalError(
                f"the pieces of one block differ in their columns: {error}"
            ) from error

    def _open_writer(self, name: str, schema: pa.Schema) -> Any:
        file = create_empty_file(_block_file(self._folder, name))
        raw = self._stack.enter_context(pa.OSFile(str(file), "wb"))
        sink = self._stack.enter_context(pa.BufferedOutputStream(raw, _BUFFER))
        return self._stack.enter_context(pa.ipc.new_stream(sink, schema))


def read_block(folder: Path, table: str) -> Iterator[Batch]:
    """Yield place and rows of each repetition in a block's file, in order.

    Batch after batch is read: pages of a mapped file would count as memory.
    """
    with pa.OSFile(str(_block_file(folder, table))) as source:
        for batch, metadata in pa.ipc.open_stream(
            source
        ).iter_batches_with_custom_metadata():
            at = 0
            for place, rows in json.loads(metadata[_METADATA_KEY]):
                yield tuple(place), batch.slice(at, rows)
                at += rows


def _block_file(folder: Path, table: str) -> Path:
    return folder / f"{table}.arrow"


def _count_rows(columns: Columns) -> int:
    return len(next(iter(columns.values())))
