"""The files of one block: Arrow's own format, uncompressed, some rows at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from curvote.chain.stage import Columns, Place
from curvote.chain.tables import Table
from curvote.durable import new_file
from curvote.errors import InternalError
from curvote.run.store.arrow import alike, together
from curvote.run.store.merging import Batch
from curvote.run.store.spans import SHARD

_BUFFER: Final = 1 << 20
_META: Final = "curvote"  # whose the rows of a batch are, and how many


class Files:
    """The tables of a block while they are written, a file each.

    Small repetitions are turned into one batch: that costs as much as a single one.
    """

    def __init__(
        self, folder: Path, tables: Sequence[Table], index: tuple[str, ...]
    ) -> None:
        self._folder, self._index = folder, index
        self._tables = {table.name: table for table in tables}
        self._held: dict[str, list[tuple[Place, Columns]]] = {}
        self._writers: dict[str, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Files:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        with self._stack:
            if not failed:
                for name in self._held:
                    self._write(name)

    @property
    def missing(self) -> list[str]:
        """The tables that nothing was added to."""
        return sorted(self._tables.keys() - self._held.keys())

    def add(self, table: str, place: Place, columns: Columns) -> None:
        """Take the rows of a repetition, or some of them; InternalError: no table."""
        if table not in self._tables:
            raise InternalError(f"{self._folder.parent.name} has no table {table}")
        held = self._held.setdefault(table, [])
        if held and not alike(held[-1][1], columns):
            self._write(table)
        held.append((place, columns))
        if sum(_rows(columns) for _, columns in held) > SHARD:
            self._write(table)

    def _write(self, name: str) -> None:
        pieces = self._held[name]
        if not pieces:
            return
        batch = together(self._tables[name], self._index, pieces)
        told = json.dumps([(place, _rows(columns)) for place, columns in pieces])
        pieces.clear()
        if name not in self._writers:
            self._writers[name] = self._writer(name, batch.schema)
        try:
            self._writers[name].write_batch(batch, {_META: told})
        except pa.ArrowInvalid as error:
            raise InternalError(
                f"the pieces of one block differ in their columns: {error}"
            ) from error

    def _writer(self, name: str, schema: pa.Schema) -> Any:
        file = new_file(_file(self._folder, name))
        raw = self._stack.enter_context(pa.OSFile(str(file), "wb"))
        sink = self._stack.enter_context(pa.BufferedOutputStream(raw, _BUFFER))
        return self._stack.enter_context(pa.ipc.new_stream(sink, schema))


def read(folder: Path, table: str) -> Iterator[Batch]:
    """Yield the rows of each repetition in a block's file, in the order written.

    Batch after batch is read: pages of a mapped file would count as memory.
    """
    with pa.OSFile(str(_file(folder, table))) as source:
        for batch, told in pa.ipc.open_stream(
            source
        ).iter_batches_with_custom_metadata():
            at = 0
            for place, rows in json.loads(told[_META]):
                yield tuple(place), batch.slice(at, rows)
                at += rows


def _file(folder: Path, table: str) -> Path:
    return folder / f"{table}.arrow"


def _rows(columns: Columns) -> int:
    return len(next(iter(columns.values())))
