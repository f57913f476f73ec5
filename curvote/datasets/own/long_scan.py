"""One pass over a long file: whole clients, checked and in the order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curvote.datasets.own.arrow_cells import MICROSECONDS, VOCABULARY
from curvote.datasets.own.given import Violations
from curvote.datasets.own.identifiers import Identifiers
from curvote.datasets.own.labelled import resolve_classes
from curvote.datasets.own.long_parameters import Parameters
from curvote.datasets.own.long_rows import LongColumns, LongReader, LongRows
from curvote.datasets.own.segments import Segments
from curvote.datasets.own.spans import ColumnSpans
from curvote.errors import UserError

CLIENTS = 65_536
_VALUES = 2**23  # a block's curves: 64 MiB at most, unless one curve is longer
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, eq=False)
class LongBlock:
    """Clients without long gaps: ``ids`` and ``labels`` (n,), and rows."""

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    segments: Segments


class LongScan:
    """A pass over a long file: blocks of whole clients, counts and violations.

    ``tally`` counts clients: all, kept, and left out for a ``gap`` or at the ``ends``;
    ``spans`` says how the values of all lie within their bounds.
    """

    def __init__(self, parameters: Parameters, path: Path) -> None:
        self.parameters, self.path = parameters, path
        self.violations = Violations(path, parameters)
        names = LongColumns(
            parameters.id, parameters.time, parameters.value, parameters.label
        )
        listed = parameters.places
        self.reader = LongReader(path, names, self.violations, listed, parameters.dates)
        self.identifiers = Identifiers(self.violations)
        self.tally = Counter(clients=0, kept=0, gap=0, ends=0)
        self.spans = ColumnSpans(*(np.array([end]) for end in parameters.bounds))

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the classes, once all rows were read."""
        parameters = self.parameters
        return resolve_classes(
            self.violations, parameters.label, self.reader.label_codes, parameters
        )

    def blocks(self) -> Iterator[LongBlock]:
        """Yield usable clients, none after the first violation."""
        most = max(1, min(CLIENTS, _VALUES // self.parameters.grid.points))
        for rows in self.reader.blocks():
            for start in range(0, len(rows.ids), most):
                part = rows.part(start, min(start + most, len(rows.ids)))
                segments = self._check_rows(part)
                if not self.violations:
                    self.spans.add(segments.values[:, np.newaxis])
                    yield self._select_usable(part, segments)
        self._finish()

    def notes(self) -> list[str]:
        """Return the sentences about left-out clients for a report."""
        tally, gaps = self.tally, self.parameters.gaps
        left_out = tally["gap"] + tally["ends"]
        sentences = (
            f"{self.reader.rows} measurements of {tally['clients']} clients, joined by"
            f" straight lines. {left_out} clients were left out: {tally['gap']} with a"
            f" gap above {gaps.most:g} {self.parameters.unit}, {tally['ends']} that do"
            " not reach both ends of the grid."
        )
        return [sentences]

    def _check_rows(self, rows: LongRows) -> Segments:
        """Return the rows of clients in the order of time; count what is wrong."""
        segments = Segments(rows.starts, rows.times, rows.values)
        order = segments.time_order()
        if order is not None:
            segments = segments.reorder(order)
        self._check_times(rows, segments, order)
        self._check_labels(rows)
        self.identifiers.add(rows.ids, rows.marks, rows.first + rows.starts[:-1])
        return self._wrap_to_day(segments) if self.reader.dates else segments

    def _check_times(
        self, rows: LongRows, segments: Segments, order: NDArray[np.int64] | None
    ) -> None:
        again = segments.repeated_times()
        places = (again if order is None else order[again]) + rows.first
        what = f"{self.parameters.time} repeats a time of the same client"
        self.violations.add(what, len(places), ((row, "") for row in places.tolist()))

    def _check_labels(self, rows: LongRows) -> None:
        begins = rows.starts[:-1]
        low = np.minimum.reduceat(rows.labels, begins)
        high = np.maximum.reduceat(rows.labels, begins)
        changed = begins[(low != high) & (low >= 0)] + rows.first
        what = f"{self.parameters.label} changes within a client"
        examples = ((row, "the client that begins at {}") for row in changed.tolist())
        self.violations.add(what, len(changed), examples)
        self._check_listed(rows, high)

    def _check_listed(self, rows: LongRows, label: NDArray[np.int64]) -> None:
        listed = self.parameters.places
        other = np.flatnonzero(label >= len(listed)) if listed else label[:0]
        texts = {code: text for text, code in self.reader.label_codes.items()}
        starts = rows.starts[other] + rows.first
        examples = (
            (row, f"the client that begins at {{}} {texts.get(code, 'another')!r}")
            for row, code in zip(starts.tolist(), label[other].tolist(), strict=True)
        )
        what = f"{self.parameters.label} {self.parameters.unlisted_text}"
        self.violations.add(what, len(other), examples)

    def _wrap_to_day(self, segments: Segments) -> Segments:
        unit = self.parameters.unit
        if unit not in _SECONDS:
            raise UserError(
                f"unit is {unit!r}, but column {self.parameters.time!r} of {self.path}"
                f" holds date-times: unit must be one of {', '.join(_SECONDS)}."
            )
        day = _SECONDS["d"] * MICROSECONDS
        midnight = np.floor(segments.first_times / day) * day
        since = segments.times - np.repeat(midnight, np.diff(segments.starts))
        times = since / (_SECONDS[unit] * MICROSECONDS)
        return Segments(segments.starts, times, segments.values)

    def _select_usable(self, rows: LongRows, segments: Segments) -> LongBlock:
        start, stop = self.parameters.grid.start, self.parameters.grid.stop
        # 0.4 - 0.3 is above 0.1: differences of times are off by their rounding.
        most = self.parameters.gaps.most + 8 * np.spacing(max(abs(start), abs(stop)))
        gap = segments.largest_gap(start, stop) > most
        short = (segments.first_times - start > most) | (
            stop - segments.last_times > most
        )
        complete = ~(gap | short)
        counts = {"kept": complete, "gap": gap, "ends": short & ~gap}
        self.tally.update({name: int(flags.sum()) for name, flags in counts.items()})
        self.tally["clients"] += len(complete)
        labels = self._class_indices(rows.labels[rows.starts[:-1]])
        return LongBlock(
            rows.ids[complete], labels[complete], segments.select(complete)
        )

    def _class_indices(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        positive = self.parameters.positive
        if positive is None:  # listed: a code is a place
            return codes
        code = self.reader.label_codes.get(positive, VOCABULARY + 1)
        return np.asarray(codes == code, dtype=np.int64)

    def _finish(self) -> None:
        self.identifiers.check()
        if not self.reader.rows:
            raise UserError(f"{self.path} has no rows.")
        parameters = self.parameters
        resolve_classes(
            self.violations, parameters.label, self.reader.label_codes, parameters
        )
        if not self.tally["kept"]:
            raise UserError(f"{self.path}: no client is left. {self.notes()[0]}")
