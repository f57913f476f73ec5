"""Rows of long-format files, one measurement a row, read a block at a time.

A run is a stretch of rows of one id. Arrays are of k runs or m rows; a row is counted
from 1, a header not being one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.datasets.own import arrow_cells as cells
from curvote.datasets.own.arrow_cells import VOCABULARY, Floats, Integers
from curvote.datasets.own.given import Violations, convert_column, read_batches

ROWS = 2**20  # a block, unless one client alone has more


@dataclass(frozen=True)
class LongColumns:
    """The four columns of a long file."""

    id: str
    time: str
    value: str
    label: str

    def as_tuple(self) -> list[str]:
        """Return the names in the order id, time, value, label."""
        return [self.id, self.time, self.value, self.label]


@dataclass(frozen=True, eq=False)
class LongRows:
    """Consecutive rows of a long file: ids, marks and lengths of runs, cells.

    ``first`` is the number of the first row.
    """

    first: int
    ids: Integers
    marks: NDArray[np.uint32]
    lengths: Integers
    times: Floats
    values: Floats
    labels: Integers

    @property
    def starts(self) -> Integers:
        """Return where each run starts, and the end of the last: (k + 1,)."""
        return np.concatenate(([0], np.cumsum(self.lengths)))

    def part(self, start: int, stop: int) -> LongRows:
        """Return the runs ``start`` to ``stop``, the latter not included."""
        begin, end = self.starts[[start, stop]].tolist()
        return LongRows(
            first=self.first + begin,
            ids=self.ids[start:stop],
            marks=self.marks[start:stop],
            lengths=self.lengths[start:stop],
            times=self.times[begin:end],
            values=self.values[begin:end],
            labels=self.labels[begin:end],
        )


class LongReader:
    """Reader of the long file at ``path``, counting its ``violations``.

    ``label_codes`` are the labels met so far and their codes, those of ``listed`` from
    the beginning. ``dates`` says whether times are date-times (microseconds on the wall
    clock) or plain numbers; ``written`` is the form in which date-times stand there.
    """

    def __init__(
        self,
        path: Path,
        names: LongColumns,
        violations: Violations,
        listed: Mapping[str, int],
        written: str | None = None,
    ) -> None:
        self.path, self.names, self.violations = path, names, violations
        self.label_codes = dict(listed)
        self.most = len(listed) + VOCABULARY
        self.written = written
        self.dates: bool | None = True if written else None
        self.rows = 0

    def blocks(self, least: int = ROWS) -> Iterator[LongRows]:
        """Yield blocks of at least ``least`` rows (but the last) that cut no run.

        Raises:
            UserError: the file cannot be read, a column is not there or of no use.
        """
        waiting: list[LongRows] = []
        for rows in self._read_parts():
            waiting.append(rows)
            if sum(len(part.times) for part in waiting) >= least:
                joined = join_rows(waiting)
                last = len(joined.ids) - 1
                waiting = [joined.part(last, last + 1)]
                yield joined.part(0, last)
        if waiting:
            yield join_rows(waiting)

    def _read_parts(self) -> Iterator[LongRows]:
        for batch in read_batches(self.path, self.names.as_tuple(), self.violations):
            if batch.num_rows:
                yield self._parse_part(
                    *(cells.plain_column(column) for column in batch.columns)
                )
            self.rows += batch.num_rows

    def _parse_part(self, ids: Any, times: Any, values: Any, labels: Any) -> LongRows:
        if self.dates is None:
            self.dates = cells.is_date_time(times)
        number = partial(cells.parse_numbers, decimal=self.violations.form.decimal)
        clock = partial(cells.wall_clock, form=self.written) if self.dates else number
        wanted = "a date-time" if self.dates else "a finite number"
        numbers = self._check_finite(self.names.time, times, clock, wanted)
        measured = self._check_finite(
            self.names.value, values, number, "a finite number"
        )
        codes = cells.encode_labels(labels, self.label_codes, self.most)
        self._count_empty(self.names.label, codes < 0)
        return LongRows(self.rows + 1, *self._find_runs(ids), numbers, measured, codes)

    def _check_finite(self, name: str, column: Any, read: Any, wanted: str) -> Floats:
        with convert_column(self.path, name, column):
            numbers: Floats = read(column)
        bad = np.flatnonzero(~np.isfinite(numbers))
        examples = (
            (self.rows + i + 1, _format_cell(column[i].as_py())) for i in bad.tolist()
        )
        self.violations.add(f"{name} is not {wanted}", len(bad), examples)
        return numbers

    def _find_runs(self, column: Any) -> tuple[Integers, NDArray[np.uint32], Integers]:
        import pyarrow.compute as pc

        column = cells.trim_ids(column)
        self._count_empty(self.names.id, np.asarray(pc.is_null(column)))
        # An empty cell is reported already; from here on it counts as the row above.
        encoded = pc.run_end_encode(pc.fill_null_forward(column))
        with convert_column(self.path, self.names.id, column):
            runs = encoded.values.fill_null("0" if cells.is_text(column) else 0)
            ids, marks = cells.identify(runs)
        ends = np.concatenate(([0], np.asarray(encoded.run_ends, dtype=np.int64)))
        return ids, marks, ends[1:] - ends[:-1]

    def _count_empty(self, name: str, empty: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(empty) + self.rows + 1
        self.violations.add(
            f"{name} is empty", len(rows), ((i, "") for i in rows.tolist())
        )


def join_rows(parts: list[LongRows]) -> LongRows:
    """Return consecutive ``parts`` as one, joining a run across them."""
    if len(parts) == 1:
        return parts[0]
    ids, marks, lengths, times, values, labels = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("ids", "marks", "lengths", "times", "values", "labels")
    )
    new = np.append(True, (ids[1:] != ids[:-1]) | (marks[1:] != marks[:-1]))
    sums = np.add.reduceat(lengths, np.flatnonzero(new))
    return LongRows(parts[0].first, ids[new], marks[new], sums, times, values, labels)


def _format_cell(value: object) -> str:
    return "is empty" if value is None else repr(value)
