"""User's own curves in long format as a data set, and the card of their file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from curvote.base.errors import UserError
from curvote.base.table_file import CsvForm, Violations, convert_column
from curvote.chain.settings import Strict
from curvote.curves.smoothing import smooth
from curvote.data import columns
from curvote.data.columns import ClientColumns, Paths, Points, Text
from curvote.data.tables import cells
from curvote.data.tables.card import FileCard, column_cards
from curvote.data.tables.cells import Floats, Integers
from curvote.data.tables.remote import Word, distinct_names


class Grid(Strict):
    """The public grid: ``points`` equidistant times from ``start`` to ``stop``."""

    start: FiniteFloat
    stop: FiniteFloat
    points: Points

    @field_validator("stop")
    @classmethod
    def _check_increasing(cls, stop: float, info: ValidationInfo) -> float:
        if not info.data.get("start", -np.inf) < stop:
            raise PydanticCustomError("order", "it must be above start")
        return stop


class Gaps(Strict):
    """The longest allowed time, in ``unit``, without a measurement."""

    most: Annotated[FiniteFloat, Field(gt=0)]


Ends = tuple[FiniteFloat, FiniteFloat]


class Parameters(columns.Labelled, CsvForm):
    """Settings of ``source:``: file, columns, classes, grid, bounds, gaps.

    ``value`` names the column of measurements, or several channels' columns, whose
    ``bounds`` may differ by name. ``irregular`` says how curves come onto the grid:
    smoothed, each by its own penalised least squares, or joined by straight lines, as
    all were in earlier versions. ``dates`` is the form of date-times that are not
    written as 2026-03-30 08:15, as ``%d.%m.%Y %H:%M``.
    """

    name: Literal["curves"] = "curves"
    path: Text
    id: Text
    time: Text
    value: Text | Annotated[tuple[Word, ...], distinct_names(1)]
    label: Text
    grid: Grid
    unit: Text
    bounds: Ends | dict[Text, Ends]
    gaps: Gaps
    irregular: Literal["smooth", "interpolate"] = "interpolate"
    dates: Text | None = None

    @field_validator("label")
    @classmethod
    def _check_columns(cls, label: str, info: ValidationInfo) -> str:
        columns = [info.data.get(name) for name in ("id", "time")]
        columns += _listed(info.data.get("value") or ())
        named = [name for name in (*columns, label) if name is not None]
        if len({*named}) < len(named):
            raise ValueError("id, time, value and label must be four different columns")
        return label

    @field_validator("bounds")
    @classmethod
    def _check_bounds(cls, bounds: Any, info: ValidationInfo) -> Any:
        by_name = bounds if isinstance(bounds, dict) else {"": bounds}
        if not all(low < high for low, high in by_name.values()):
            raise PydanticCustomError("order", "the first must be below the second")
        values = _listed(info.data.get("value") or ())
        if bounds is by_name and values and {*bounds} != {*values}:
            words = f"state those of {', '.join(values)}, and of no other"
            raise PydanticCustomError("channels", words)
        return bounds

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of measurements, one for each channel."""
        return _listed(self.value)

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels, where there are several."""
        return self.values if len(self.values) > 1 else ()

    @property
    def ends(self) -> Floats:
        """The lower and upper bound of each channel, (2, C)."""
        by_name = self.bounds if isinstance(self.bounds, dict) else {}
        return np.array([by_name.get(x, self.bounds) for x in self.values]).T

    @property
    def points(self) -> NDArray[np.float64]:
        """Return the grid (T,)."""
        return np.linspace(self.grid.start, self.grid.stop, self.grid.points)


def _listed(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


ROWS = 2**20  # a block, unless one client alone has more


@dataclass(frozen=True, eq=False)
class LongRows:
    """Consecutive rows of a long file: ids, marks and lengths of runs, cells.

    ``values`` are (m, C), NaN where one is missing. ``first`` is the number of the
    first row.
    """

    first: int
    ids: Integers
    marks: cells.Marks
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

    ``label_codes`` are the labels met so far and their codes, those that are listed
    from the beginning. ``dates`` says whether times are date-times (microseconds on the
    wall clock) or plain numbers.
    """

    def __init__(
        self, path: Path, parameters: Parameters, violations: Violations
    ) -> None:
        self.path, self.names, self.violations = path, parameters, violations
        self.label_codes = parameters.places
        self.most = len(self.label_codes) + cells.VOCABULARY
        self.dates: bool | None = True if parameters.dates else None
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
        its = self.names
        names = [its.id, its.time, *its.values, its.label]
        for begin, block in cells.read_blocks(self.path, names, self.violations):
            self.rows = begin
            yield self._parse_part(*block.values())
            self.rows = begin + len(block[its.id])

    def _parse_part(self, ids: Any, times: Any, *values_and_labels: Any) -> LongRows:
        *values, labels = values_and_labels
        if self.dates is None:
            self.dates = cells.is_date_time(times)
        its, n = self.names, self.rows
        number = partial(cells.parse_numbers, decimal=its.decimal)
        clock = partial(cells.wall_clock, form=its.dates) if self.dates else number
        wanted = "a date-time" if self.dates else "a finite number"
        numbers = self._check_finite(its.time, times, clock, wanted)
        measured = [
            self._check_finite(name, column, number, "a finite number")
            for name, column in zip(its.values, values, strict=True)
        ]
        codes = cells.encode_labels(labels, self.label_codes, self.most)
        cells.count_wrong(self.violations, f"{its.label} is empty", codes < 0, n)
        table = np.column_stack(measured)
        return LongRows(n + 1, *self._find_runs(ids), numbers, table, codes)

    def _check_finite(self, name: str, column: Any, read: Any, wanted: str) -> Floats:
        its = self.names
        missing = its.irregular == "smooth" and name in its.values
        if missing:
            column = cells.null_marks(column)
        with convert_column(self.path, name, column):
            numbers: Floats = read(column)
        what, wrong = f"{name} is not {wanted}", ~np.isfinite(numbers)
        if missing:
            wrong &= ~(np.isnan(numbers) & np.asarray(column.is_null(nan_is_null=True)))
        cells.count_wrong(self.violations, what, wrong, self.rows, column)
        return numbers

    def _find_runs(self, column: Any) -> tuple[Integers, cells.Marks, Integers]:
        import pyarrow.compute as pc

        name, column = self.names.id, cells.trim_ids(column)
        empty = np.asarray(pc.is_null(column))
        cells.count_wrong(self.violations, f"{name} is empty", empty, self.rows)
        # An empty cell is reported already; from here on it counts as the row above.
        encoded = pc.run_end_encode(pc.fill_null_forward(column))
        ids, marks = cells.identify_column(self.path, name, encoded.values)
        ends = np.concatenate(([0], np.asarray(encoded.run_ends, dtype=np.int64)))
        return ids, marks, ends[1:] - ends[:-1]


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


Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Segments:
    """``times`` (m,) and ``values`` (m, C) of n clients, each with at least one row."""

    starts: Integers
    times: Floats
    values: Floats

    @property
    def owners(self) -> Integers:
        """Return the client, 0 to n - 1, of each row (m,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def first_times(self) -> Floats:
        """Return each client's first time (n,)."""
        return self.times[self.starts[:-1]]

    def time_order(self) -> Integers | None:
        """Return the stable order by time within clients, None if ordered."""
        rising = self.times[1:] >= self.times[:-1]
        rising[self.starts[1:-1] - 1] = True
        return None if rising.all() else np.lexsort((self.times, self.owners))

    def repeated_times(self) -> Integers:
        """Return the rows whose time is that of the row before, in ordered rows."""
        same = self.times[1:] == self.times[:-1]
        same[self.starts[1:-1] - 1] = False
        return np.flatnonzero(same) + 1

    def select(self, clients: Flags) -> Segments:
        """Return the clients that are true in ``clients`` (n,)."""
        if clients.all():
            return self
        lengths = np.diff(self.starts)
        rows = np.repeat(clients, lengths)
        starts = np.concatenate(([0], np.cumsum(lengths[clients])))
        return Segments(starts, self.times[rows], self.values[rows])

    def largest_gap(self, start: float, stop: float) -> Floats:
        """Return each client's longest time between neighbours (n,), 0 for one row.

        Only gaps count of which some part lies between ``start`` and ``stop``.
        """
        gaps = np.zeros(len(self.times))
        before, after = self.times[:-1], self.times[1:]
        gaps[:-1] = np.where((before < stop) & (after > start), after - before, 0.0)
        gaps[self.starts[1:] - 1] = 0.0
        return np.maximum.reduceat(gaps, self.starts[:-1])

    def channel(self, place: int) -> Segments:
        """Return the measurements of a channel; a client may have none."""
        there = ~np.isnan(self.values[:, place])
        starts = np.append(0, np.cumsum(there))[self.starts]
        return Segments(starts, self.times[there], self.values[there, place, None])

    def on_grid(self, parameters: Parameters) -> Floats:
        """Return each client's channels on the grid, one behind the other: (n, C T)."""
        grid, places = parameters.points, range(self.values.shape[1])
        if parameters.irregular == "smooth":
            return smooth(grid, self.starts, self.times, self.values)
        return np.hstack([self.channel(place).interpolate(grid) for place in places])

    def interpolate(self, grid: Floats) -> Floats:
        """Return one channel's values, joined by straight lines, on ``grid``: (n, T).

        ``grid`` (T,) increases. Before its first and after its last measurement a
        client's curve stays level. A measurement on a grid point is kept exactly.
        """
        n, t = len(self.starts) - 1, len(grid)
        # A row with j grid points before it is at or left of all grid points from j on:
        # counting such rows is a binary search for every client at once, in integers.
        below = np.searchsorted(grid, self.times, side="left")
        keys = self.owners * (t + 1) + below
        counts = np.bincount(keys, minlength=n * (t + 1))
        after = np.cumsum(counts).reshape(n, t + 1)[:, :t]
        left_rows = np.maximum(after - 1, self.starts[:-1, np.newaxis])
        right = np.minimum(after, self.starts[1:, np.newaxis] - 1)
        origin, width = self.times[left_rows], self.times[right] - self.times[left_rows]
        width[left_rows == right] = 1.0  # the ends: both values are the same
        share = np.clip((grid - origin) / width, 0.0, 1.0)
        low = self.values[left_rows, 0]
        return np.asarray(low + share * (self.values[right, 0] - low))


CLIENTS = 65_536
_LEVEL = 1e-12  # of the bounds: a level curve that was smoothed is off by rounding
_VALUES = 2**23  # a block's curves: 64 MiB at most, unless one curve is longer
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


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
        self.reader = LongReader(path, parameters, self.violations)
        self.identifiers = cells.Identifiers(self.violations)
        self.tally = Counter(clients=0, kept=0, gap=0, ends=0)
        self.spans = cells.ColumnSpans(*parameters.ends)

    def classes(self) -> tuple[str, ...]:
        """Return the classes, once all rows were read; UserError: violations."""
        codes = self.reader.label_codes
        return columns.resolve_classes(
            self.violations, self.parameters.label, codes, self.parameters
        )

    def blocks(self) -> Iterator[LongBlock]:
        """Yield usable clients, none after the first violation."""
        most = max(1, min(CLIENTS, _VALUES // width(self.parameters)))
        for rows in self.reader.blocks():
            for start in range(0, len(rows.ids), most):
                part = rows.part(start, min(start + most, len(rows.ids)))
                segments = self._check_rows(part)
                if not self.violations:
                    self.spans.add(segments.values, np.isnan(segments.values))
                    yield self._select_usable(part, segments)
        self.identifiers.check()
        self.classes()
        if not self.tally["kept"]:
            raise UserError(f"{self.path}: no client is left. {self.notes()[0]}")

    def notes(self) -> list[str]:
        """Return the sentences about left-out clients for a report."""
        tally, gaps = self.tally, self.parameters.gaps
        smooths = self.parameters.irregular == "smooth"
        how = "each smoothed" if smooths else "joined by straight lines"
        left_out = tally["gap"] + tally["ends"]
        return [
            (
                f"{self.reader.rows} measurements of {tally['clients']} clients, {how}."
                f" {left_out} clients were left out: {tally['gap']}"
                f" with a gap above {gaps.most:g} {self.parameters.unit},"
                f" {tally['ends']} that do not reach both ends of the grid."
            )
        ]

    def _check_rows(self, rows: LongRows) -> Segments:
        """Return the rows of clients in the order of time; count what is wrong."""
        segments = Segments(rows.starts, rows.times, rows.values)
        order = segments.time_order()
        if order is not None:
            segments = Segments(rows.starts, rows.times[order], rows.values[order])
        again = segments.repeated_times()
        places = (again if order is None else order[again]) + rows.first
        what = f"{self.parameters.time} repeats a time of the same client"
        self.violations.add(what, len(places), ((row, "") for row in places.tolist()))
        self._check_labels(rows)
        self.identifiers.add(rows.ids, rows.marks, rows.first + rows.starts[:-1])
        return self._wrap_to_day(segments) if self.reader.dates else segments

    def _check_labels(self, rows: LongRows) -> None:
        begins = rows.starts[:-1]
        low = np.minimum.reduceat(rows.labels, begins)
        high = np.maximum.reduceat(rows.labels, begins)
        changed = begins[(low != high) & (low >= 0)] + rows.first
        what = f"{self.parameters.label} changes within a client"
        examples = ((row, "the client that begins at {}") for row in changed.tolist())
        self.violations.add(what, len(changed), examples)
        listed = self.parameters.places
        other = np.flatnonzero(high >= len(listed)) if listed else high[:0]
        texts = {code: text for text, code in self.reader.label_codes.items()}
        starts = rows.starts[other] + rows.first
        examples = (
            (row, f"the client that begins at {{}} {texts.get(code, 'another')!r}")
            for row, code in zip(starts.tolist(), high[other].tolist(), strict=True)
        )
        what = f"{self.parameters.label} {self.parameters.unlisted_text}"
        self.violations.add(what, len(other), examples)

    def _wrap_to_day(self, segments: Segments) -> Segments:
        unit = self.parameters.unit
        if unit not in SECONDS:
            raise UserError(
                f"unit is {unit!r}, but column {self.parameters.time!r} of {self.path}"
                f" holds date-times: unit must be one of {', '.join(SECONDS)}."
            )
        day = SECONDS["d"] * cells.MICROSECONDS
        midnight = np.floor(segments.first_times / day) * day
        since = segments.times - np.repeat(midnight, np.diff(segments.starts))
        times = since / (SECONDS[unit] * cells.MICROSECONDS)
        return Segments(segments.starts, times, segments.values)

    def _select_usable(self, rows: LongRows, segments: Segments) -> LongBlock:
        start, stop = self.parameters.grid.start, self.parameters.grid.stop
        # 0.4 - 0.3 is above 0.1: differences of times are off by their rounding.
        most = self.parameters.gaps.most + 8 * np.spacing(max(abs(start), abs(stop)))
        gap, short = np.zeros((2, len(segments.starts) - 1), dtype=bool)
        for place in range(segments.values.shape[1]):
            measured = segments.channel(place)
            there = np.diff(measured.starts) > 0
            channel = measured.select(there)
            gap[~there] = True
            gap[there] |= channel.largest_gap(start, stop) > most
            last_times = channel.times[channel.starts[1:] - 1]
            late, early = channel.first_times - start, stop - last_times
            short[there] |= (late > most) | (early > most)
        complete = ~(gap | short)
        counts = {"kept": complete, "gap": gap, "ends": short & ~gap}
        self.tally.update({name: int(flags.sum()) for name, flags in counts.items()})
        self.tally["clients"] += len(complete)
        labels, positive = rows.labels[rows.starts[:-1]], self.parameters.positive
        if positive is not None:  # else listed: a code is a place
            code = self.reader.label_codes.get(positive, cells.VOCABULARY + 1)
            labels = np.asarray(labels == code, dtype=np.int64)
        usable = segments.select(complete)
        return LongBlock(rows.ids[complete], labels[complete], usable)


def examined(parameters: Parameters, paths: Paths) -> FileCard:
    """Return the card of the file for its owner; UserError: violations."""
    path = paths["path"]
    scan = LongScan(parameters, path)
    counts = np.zeros(len(parameters.classes or (False, True)), dtype=np.int64)
    flat, repeated = 0, cells.RepeatedRows()
    for block in scan.blocks():
        if len(block.ids):
            curves = block.segments.on_grid(parameters)
            counts += np.bincount(block.labels, minlength=len(counts))
            by_channel = curves.reshape(len(curves), len(parameters.values), -1)
            spread, wide = np.ptp(by_channel, axis=2), np.ptp(parameters.ends, axis=0)
            flat += int((spread <= _LEVEL * wide).any(axis=1).sum())
            repeated.add(np.column_stack([curves, block.labels]))
    first = repeated.first_occurrences()
    missing = scan.reader.rows - scan.spans.values
    tally, most = scan.tally, f"{parameters.gaps.most:g} {parameters.unit}"
    lost = tally["clients"] - tally["kept"]
    patchy = f"the curve does not reach both ends of the grid within {most}"
    many = (
        f"{lost:,} of {tally['clients']:,} clients are left out: state a larger"
        " gaps.most or a shorter grid, if that is right for your device."
    )
    level = (
        f"{flat:,} curves hold one value only: a device that was not worn?"
        " They count as clients."
    )
    remarks = ((many, 10 * lost > tally["clients"]), (level, flat))
    return FileCard(
        path=path,
        rows=scan.reader.rows,
        clients=tally["kept"],
        classes=dict(zip(scan.classes(), counts.tolist(), strict=True)),
        columns=column_cards([*parameters.values], scan.spans, missing.tolist()),
        repeats=0 if first is None else int((~first).sum()),
        repeats_are="kept",
        left_out={f"a gap above {most}": tally["gap"], patchy: tally["ends"]},
        more=tuple(words for words, applies in remarks if applies),
    )


SIMULATED = False
USER_FILE = True  # the file is the user's: no publisher, no entry in sources.toml

files, size = columns.always(("path",)), columns.always(None)
classes = columns.listed_classes


def width(parameters: Parameters) -> int:
    """Return how many values a curve has by the pipeline, on all channels' grids."""
    return parameters.grid.points * len(parameters.values)


def facts(parameters: Parameters, paths: Paths) -> dict[str, Any]:
    """Return the public metadata of the file's curves.

    ``gaps`` counts all clients, and those left out for a long ``gap`` or because they
    do not reach the ``ends`` of the grid.

    Raises:
        UserError: everything that is wrong with the file, at once.
    """
    scan = LongScan(parameters, paths["path"])
    k = len(parameters.classes or "no")
    counts = sum(np.bincount(b.labels, minlength=k) for b in scan.blocks())
    lower, upper = (end if len(end) > 1 else end[0] for end in parameters.ends.tolist())
    return columns.facts(
        np.asarray(counts).tolist(),
        scan.classes(),
        title=f"Curves of {paths['path'].name}",
        grid=parameters.points.tolist(),
        domain=[parameters.grid.start, parameters.grid.stop],
        unit=parameters.unit,
        bounds={"lower": lower, "upper": upper, "why": "stated by the user"},
        gaps={"most": parameters.gaps.most, **scan.tally},
        notes=scan.notes(),
        **columns.form_of_curves(parameters),
    )


def pieces(parameters: Parameters, paths: Paths) -> Iterator[ClientColumns]:
    """Yield client_id, label, group (n,) and curve (n, T) of at most 65,536 clients.

    Raises:
        UserError: at the first block after which nothing of the file can be used; with
            everything that is wrong, at the latest at the end.
    """
    begin = 0
    for block in LongScan(parameters, paths["path"]).blocks():
        if n := len(block.ids):
            curves = block.segments.on_grid(parameters)
            groups = np.arange(n) + begin
            yield columns.client_columns(curves, block.labels, block.ids, groups)
            begin += n


def clients(parameters: Parameters, paths: Paths) -> ClientColumns:
    """Return all ``pieces`` as one table: for files that fit into memory."""
    return columns.join_pieces(pieces(parameters, paths))
