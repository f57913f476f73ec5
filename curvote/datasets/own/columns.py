"""Which columns a user's file has and what they hold, for a pipeline to begin with.

Names, kinds and the way in which the file is written only: no value of a column is
looked at for what it says of anybody.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from curvote.datasets.own import arrow_cells as cells
from curvote.datasets.own.given import (
    DECIMAL_COMMA,
    PLAIN,
    SEPARATORS,
    CsvForm,
    Violations,
    batches,
    kind,
    names_in,
    refuse_other_separator,
)
from curvote.datasets.own.table_rows import MARKS
from curvote.errors import UserError

Kind = Literal["number", "text", "date-time", "code", "empty"]
# What else is written where a value is missing, in any case of letters.
_ABSENT: Final = (
    *("k.a.", "k. a.", "n.a.", "n. a.", "#n/a", "#nv", "none", "missing", "unknown"),
    *("fehlt", "unbekannt", "keine angabe", "no data", "-", "--", ".", ".."),
)
_DATES: Final = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y")
_CLOCKS: Final = ("", " %H:%M", " %H:%M:%S")
_SAMPLE: Final = 1_000  # rows by which the separator is found


@dataclass(frozen=True)
class Layout:
    """What a pipeline begins with: the kind of each column, and how many rows.

    ``form`` is how the file is written, ``absent`` texts that seem to mean missing,
    ``dates`` how the columns of dates are written, ``own`` the columns whose cells are
    names or numbers of rows: no two are equal.
    """

    path: Path
    kinds: dict[str, Kind]
    rows: int
    form: CsvForm = PLAIN
    absent: tuple[str, ...] = ()
    dates: dict[str, str] = field(default_factory=dict)
    own: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the columns, in the file's order."""
        return list(self.kinds)


def layout(path: Path) -> Layout:
    """Return the columns of the file at ``path``; their kinds are those of its start.

    Raises:
        UserError: no such file, or none that can be read; columns of one name.
    """
    if not path.is_file():
        raise UserError(f"no file {path}. Name a CSV or Parquet file that is there.")
    form = _form(path) if kind(path) == "csv" else PLAIN
    names = [
        name for name in names_in(path, form) if name
    ]  # pandas writes its index so
    _check_names(path, names, form)
    violations = Violations(path, form)
    first = next(iter(islice(batches(path, names, violations), 1)), None)
    violations.check()
    if first is None or not first.num_rows:
        raise UserError(f"{path} has no rows.")
    columns = {name: cells.trimmed(cells.plain(first[name])) for name in names}
    absent = _absent(columns)
    there = {name: _there(column, absent) for name, column in columns.items()}
    if form.separator != "," and any(map(_commas, there.values())):
        form = form.model_copy(update={"decimal": ","})
    dates = {name: _date(column) for name, column in there.items()}
    return Layout(
        path,
        {
            name: _kind(column, dates[name])
            if 2 * len(column) > len(columns[name])
            else "empty"
            for name, column in there.items()
        },
        _counted(path, names[0], form),
        form,
        absent,
        {name: written for name, written in dates.items() if written},
        tuple(name for name in names if _own(there[name], len(columns[name]))),
    )


def runs(path: Path, column: str, form: CsvForm = PLAIN) -> int:
    """Return how many stretches of rows of one text or number a column has."""
    import pyarrow.compute as pc

    total, last = 0, object()
    for batch in batches(path, [column], Violations(path, form)):
        ids = pc.run_end_encode(cells.plain(batch[column])).values
        if len(ids):
            total += len(ids) - (ids[0].as_py() == last)
            last = ids[-1].as_py()
    return total


def _form(path: Path) -> CsvForm:
    """Return how a CSV is written: its letters, and what parts its columns."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rb") as stream:
        begin = stream.read(4)
        wide = begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while not wide and begin:
                decoder.decode(begin)
                begin = stream.read(1 << 20)
            letters = "utf-16" if wide else "utf-8"
        except UnicodeDecodeError:
            letters = "cp1252"  # what spreadsheets write where it is not UTF-8
    with opened(path, "rt", encoding=letters, errors="replace", newline="") as stream:
        lines = [*islice(stream, _SAMPLE)]
    return CsvForm(separator=_separator(lines), encoding=letters)


def _separator(lines: list[str]) -> Any:
    """Return what parts most lines into as many columns as the first one has."""

    def columns(mark: str) -> tuple[float, int]:
        rows = [row for row in csv.reader(lines, delimiter=mark) if row]
        wide = len(rows[0]) if rows else 0
        alike = sum(len(row) == wide for row in rows) / max(len(rows), 1)
        return (alike if wide > 1 else 0.0), wide

    return max(SEPARATORS, key=columns)


def _check_names(path: Path, names: list[str], form: CsvForm) -> None:
    refuse_other_separator(path, names, form)
    if len(names) == 1:
        raise UserError(f"{path} has one column, {names[0]!r}: a label needs another.")
    wrong = sorted({name for name in names if names.count(name) > 1})
    if wrong:
        said = ", ".join(repr(name) for name in wrong)
        raise UserError(f"{path}: each column needs a name of its own, not {said}.")


def _counted(path: Path, column: str, form: CsvForm) -> int:
    found = batches(path, [column], Violations(path, form))
    return sum(batch.num_rows for batch in found)


def _absent(columns: dict[str, Any]) -> tuple[str, ...]:
    """Return the texts that mean missing, as they stand in columns of texts."""
    import pyarrow.compute as pc

    texts = [c for c in columns.values() if cells.is_text(c)]
    found = {text for c in texts for text in pc.unique(c).to_pylist() if text}
    return tuple(sorted(t for t in found - {*MARKS} if t.lower() in _ABSENT))


def _there(column: Any, absent: tuple[str, ...]) -> Any:
    """Return the cells of a column that say something."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return column.drop_null()
    marks = pa.array([*MARKS, *absent, None], pa.string())
    return column.filter(pc.invert(pc.is_in(column, marks)))


def _mostly(column: Any, pattern: str) -> bool:
    """Say whether over half of the texts of a column are of a pattern."""
    import pyarrow.compute as pc

    if not cells.is_text(column) or not len(column):
        return False
    return bool(pc.mean(pc.match_substring_regex(column, pattern)).as_py() > 0.5)


def _commas(column: Any) -> bool:
    return _mostly(column, rf"^({DECIMAL_COMMA}|[+-]?\d+)$") and bool(
        re.search(DECIMAL_COMMA, " ".join(column.to_pylist()))
    )


def _date(column: Any) -> str:
    """Return the form in which nearly all dates of a column are written, "" for none.

    Dates like 2026-03-30 are read as they stand, so they need none in curves; a table
    says so of a feature.
    """
    import pyarrow.compute as pc

    if not _mostly(
        column, r"^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}( \d{1,2}:\d{2}(:\d{2})?)?$"
    ):
        return ""
    for written in (
        f"{day}{clock}" for day in ("%Y-%m-%d", *_DATES) for clock in _CLOCKS
    ):
        read = pc.strptime(column, format=written, unit="s", error_is_null=True)
        if read.null_count < 0.01 * len(column):  # one wrong cell hides no column
            return written
    return ""


def _own(column: Any, rows: int) -> bool:
    """Say whether a column names its rows: texts, codes or a count, each once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(column) < max(rows, 2) or pc.count_distinct(column).as_py() < len(column):
        return False
    if cells.is_text(column):
        if not _mostly(column, r"^\d+$"):
            return not _mostly(
                column, rf"^[+-]?[\d.]+$|^{DECIMAL_COMMA}$"
            ) and not _date(column)
        if _mostly(column, r"^0\d+$"):
            return True
        column = column.cast(pa.float64())
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        return False
    ends = pc.min_max(column).as_py()
    return bool(ends["max"] - ends["min"] == len(column) - 1)


def _kind(column: Any, written: str) -> Kind:
    """Return the kind of a column by its cells that say something."""
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return "date-time" if cells.is_date_time(column) else "number"
    if written or cells.is_date_time(column):
        return "date-time"
    if (
        _mostly(column, r"^\d+$")
        and pc.any(pc.match_substring_regex(column, r"^0\d+$")).as_py()
    ):
        return "code"
    # A word here and there in a column of numbers is for `check` to name, and commas.
    comma = pc.match_substring_regex(column, f"^{DECIMAL_COMMA}$")
    words = np.isnan(cells.numbers(column)) & ~np.asarray(comma)
    return "text" if len(words) and words.mean() > 0.5 else "number"
