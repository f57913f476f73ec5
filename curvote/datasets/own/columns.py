"""Column kinds of a user's file, guessed from its first rows.

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
    column_names,
    file_kind,
    read_batches,
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
class FileLayout:
    """The kind of each column of a file, and its number of rows.

    ``form`` is how the file is written, ``absent`` texts that seem to mean missing,
    ``dates`` how the columns of dates are written, ``unique_columns`` the columns whose
    cells are names or numbers of rows: no two are equal.
    """

    path: Path
    kinds: dict[str, Kind]
    rows: int
    form: CsvForm = PLAIN
    absent: tuple[str, ...] = ()
    dates: dict[str, str] = field(default_factory=dict)
    unique_columns: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the columns, in the file's order."""
        return list(self.kinds)


def read_layout(path: Path) -> FileLayout:
    """Return the layout of the file at ``path``, guessed from its start.

    Raises:
        UserError: no such file, or none that can be read; columns of one name.
    """
    if not path.is_file():
        raise UserError(f"no file {path}. Name a CSV or Parquet file that is there.")
    form = _guess_form(path) if file_kind(path) == "csv" else PLAIN
    names = [
        name for name in column_names(path, form) if name
    ]  # pandas writes its index so
    _check_names(path, names, form)
    violations = Violations(path, form)
    first = next(iter(islice(read_batches(path, names, violations), 1)), None)
    violations.check()
    if first is None or not first.num_rows:
        raise UserError(f"{path} has no rows.")
    columns = {name: cells.trim_ids(cells.plain_column(first[name])) for name in names}
    absent = _missing_texts(columns)
    there = {name: _present_cells(column, absent) for name, column in columns.items()}
    if form.separator != "," and any(map(_has_decimal_commas, there.values())):
        form = form.model_copy(update={"decimal": ","})
    dates = {name: _date_form(column) for name, column in there.items()}
    return FileLayout(
        path,
        {
            name: _column_kind(column, dates[name])
            if 2 * len(column) > len(columns[name])
            else "empty"
            for name, column in there.items()
        },
        _count_rows(path, names[0], form),
        form,
        absent,
        {name: written for name, written in dates.items() if written},
        tuple(
            name for name in names if _identifies_rows(there[name], len(columns[name]))
        ),
    )


def count_runs(path: Path, column: str, form: CsvForm = PLAIN) -> int:
    """Return the number of runs of equal values in a column."""
    import pyarrow.compute as pc

    total, last = 0, object()
    for batch in read_batches(path, [column], Violations(path, form)):
        ids = pc.run_end_encode(cells.plain_column(batch[column])).values
        if len(ids):
            total += len(ids) - (ids[0].as_py() == last)
            last = ids[-1].as_py()
    return total


def _guess_form(path: Path) -> CsvForm:
    """Return the encoding, separator and decimal mark of a CSV file."""
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
    return CsvForm(separator=_guess_separator(lines), encoding=letters)


def _guess_separator(lines: list[str]) -> Any:
    """Return the separator that splits most lines alike."""

    def count_columns(mark: str) -> tuple[float, int]:
        rows = [row for row in csv.reader(lines, delimiter=mark) if row]
        wide = len(rows[0]) if rows else 0
        alike = sum(len(row) == wide for row in rows) / max(len(rows), 1)
        return (alike if wide > 1 else 0.0), wide

    return max(SEPARATORS, key=count_columns)


def _check_names(path: Path, names: list[str], form: CsvForm) -> None:
    refuse_other_separator(path, names, form)
    if len(names) == 1:
        raise UserError(f"{path} has one column, {names[0]!r}: a label needs another.")
    wrong = sorted({name for name in names if names.count(name) > 1})
    if wrong:
        wrong_names = ", ".join(repr(name) for name in wrong)
        raise UserError(
            f"{path}: each column needs a name of its own, not {wrong_names}."
        )


def _count_rows(path: Path, column: str, form: CsvForm) -> int:
    row_batches = read_batches(path, [column], Violations(path, form))
    return sum(batch.num_rows for batch in row_batches)


def _missing_texts(columns: dict[str, Any]) -> tuple[str, ...]:
    """Return the texts that mean missing in columns of texts."""
    import pyarrow.compute as pc

    texts = [c for c in columns.values() if cells.is_text(c)]
    texts_found = {text for c in texts for text in pc.unique(c).to_pylist() if text}
    return tuple(sorted(t for t in texts_found - {*MARKS} if t.lower() in _ABSENT))


def _present_cells(column: Any, absent: tuple[str, ...]) -> Any:
    """Return the cells of a column that say something."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return column.drop_null()
    marks = pa.array([*MARKS, *absent, None], pa.string())
    return column.filter(pc.invert(pc.is_in(column, marks)))


def _mostly_matches(column: Any, pattern: str) -> bool:
    """Return whether over half of a column's texts match a pattern."""
    import pyarrow.compute as pc

    if not cells.is_text(column) or not len(column):
        return False
    return bool(pc.mean(pc.match_substring_regex(column, pattern)).as_py() > 0.5)


def _has_decimal_commas(column: Any) -> bool:
    return _mostly_matches(column, rf"^({DECIMAL_COMMA}|[+-]?\d+)$") and bool(
        re.search(DECIMAL_COMMA, " ".join(column.to_pylist()))
    )


def _date_form(column: Any) -> str:
    """Return the form in which nearly all dates of a column are written, "" for none.

    Dates like 2026-03-30 are read as they stand, so they need none in curves; a table
    says so of a feature.
    """
    import pyarrow.compute as pc

    if not _mostly_matches(
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


def _identifies_rows(column: Any, rows: int) -> bool:
    """Return whether a column identifies rows by texts, codes or a count."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(column) < max(rows, 2) or pc.count_distinct(column).as_py() < len(column):
        return False
    if cells.is_text(column):
        if not _mostly_matches(column, r"^\d+$"):
            return not _mostly_matches(
                column, rf"^[+-]?[\d.]+$|^{DECIMAL_COMMA}$"
            ) and not _date_form(column)
        if _mostly_matches(column, r"^0\d+$"):
            return True
        column = column.cast(pa.float64())
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        return False
    ends = pc.min_max(column).as_py()
    return bool(ends["max"] - ends["min"] == len(column) - 1)


def _column_kind(column: Any, written: str) -> Kind:
    """Return the kind of a column by its cells that are not missing."""
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return "date-time" if cells.is_date_time(column) else "number"
    if written or cells.is_date_time(column):
        return "date-time"
    if (
        _mostly_matches(column, r"^\d+$")
        and pc.any(pc.match_substring_regex(column, r"^0\d+$")).as_py()
    ):
        return "code"
    # A word here and there in a column of numbers is for `check` to name, and commas.
    comma = pc.match_substring_regex(column, f"^{DECIMAL_COMMA}$")
    words = np.isnan(cells.parse_numbers(column)) & ~np.asarray(comma)
    return "text" if len(words) and words.mean() > 0.5 else "number"
