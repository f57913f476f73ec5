"""Tables as they are read: only the columns asked for, each part of a file once.

What this process has opened and decoded last is kept, within bounds: cells of one stage
read the same repetitions, and repetitions share row groups.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curvote.chain.stage import Columns
from curvote.run.places import source
from curvote.run.store.arrow import Told, as_numpy, kinds_of
from curvote.run.store.spans import SHARD, Span

_FILES: Final = 32
_BYTES: Final = 64 << 20
_lock = RLock()  # neither the files nor what is kept are safe in several threads
Stamp = tuple[int, int, int]
Key = tuple[Path, Stamp, int, str]
_files: OrderedDict[tuple[Path, Stamp], pq.ParquetFile] = OrderedDict()


def forget() -> None:
    """Close the files that are kept open, and drop what was decoded."""
    with _lock:
        _kept.clear()
        while _files:
            _files.popitem()[1].close()


class TableFile:
    """One table of an artifact, as the file stood when this was made."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        found = path.stat()
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        self._key = path, stamp

    def sizes(self) -> list[int]:
        """Return the rows of each row group."""
        with _lock:
            told = self._file().metadata
            return [told.row_group(i).num_rows for i in range(told.num_row_groups)]

    def columns(self, spans: Sequence[Span], only: Sequence[str] | None) -> Columns:
        """Return the columns of these rows, all or ``only`` some, as numpy arrays."""
        with _lock:
            names = [n for n in self._kinds if only is None or n in only]
            parts = [self._part(span, names) for span in spans]
            if len(parts) == 1:
                return as_numpy(parts[0], self._kinds)
            schema = self._file().schema_arrow
        tables = [pa.table(part) for part in parts]
        empty = schema.empty_table().select(names)
        table = pa.concat_tables(tables) if tables else empty
        return as_numpy({name: table[name] for name in names}, self._kinds)

    @cached_property
    def _kinds(self) -> dict[str, Told]:
        return kinds_of(self.name, self._file().schema_arrow)

    def _part(self, span: Span, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        if span.rows < SHARD < self._rows(span.group):  # before version 4
            table = pa.concat_tables(self._streamed(span, names))
            return dict(zip(names, table.columns, strict=True))
        known = {name: _kept.get((*self._key, span.group, name)) for name in names}
        missing = [name for name, column in known.items() if column is None]
        whole: dict[str, Any] = known | self._decoded(span.group, missing)
        return {n: column.slice(span.first, span.rows) for n, column in whole.items()}

    def _rows(self, group: int) -> int:
        return int(self._file().metadata.row_group(group).num_rows)

    def _decoded(self, group: int, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        if not names:
            return {}
        table = self._file().read_row_group(group, columns=names, use_threads=False)
        found = {name: table[name] for name in names}
        for name, column in found.items():
            _kept.add((*self._key, group, name), column)
        return found

    def _streamed(self, span: Span, names: Sequence[str]) -> Iterator[pa.Table]:
        """Yield rows of a row group that is too large to be decoded whole."""
        at, stop = 0, span.first + span.rows
        batches = self._file().iter_batches(SHARD, [span.group], list(names))
        for batch in batches:
            low, high = max(span.first - at, 0), min(stop - at, len(batch))
            if low < high:
                yield pa.Table.from_batches([batch.slice(low, high - low)])
            at += len(batch)
            if at >= stop:
                return

    def _file(self) -> pq.ParquetFile:
        if self._key not in _files:
            _files[self._key] = pq.ParquetFile(source(self._key[0]))
            if len(_files) > _FILES:
                _files.popitem(last=False)[1].close()
        _files.move_to_end(self._key)
        return _files[self._key]


class _Kept:
    """Decoded columns, those that were used last: up to some bytes of them."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._columns: OrderedDict[Key, pa.ChunkedArray] = OrderedDict()

    def get(self, key: Key) -> pa.ChunkedArray | None:
        """Return a column if it is still there."""
        if key in self._columns:
            self._columns.move_to_end(key)
        return self._columns.get(key)

    def add(self, key: Key, column: pa.ChunkedArray) -> None:
        """Keep a column, and let go of those that were not used for longest."""
        self._columns[key] = column
        self._held += column.nbytes
        while self._held > self._most:
            self._held -= self._columns.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        """Let go of all."""
        self._columns.clear()
        self._held = 0


_kept = _Kept(_BYTES)
