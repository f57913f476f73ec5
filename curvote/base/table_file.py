"""Reader of CSV and Parquet tables: columns by name, all problems at once."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import Problem, UserError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd


MAX_LISTED = 10  # lines that a problem names, of however many
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "?")
Array = NDArray[np.float64]
Table: TypeAlias = "Cells | pd.DataFrame"


class Problems:
    """Problems of the table at ``path``, collected until `check`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._messages: list[str] = []

    def add(self, words: str) -> None:
        """Record one problem."""
        self._messages.append(words if words.endswith("?") else f"{words}.")

    def add_rows(self, frame: Table, wrong: NDArray[np.bool_], words: str) -> None:
        """Record a problem of the rows where ``wrong`` is true, if any."""
        if wrong.any():
            self.add(f"{words} in {describe_lines(frame, wrong)}")

    def check(self) -> None:
        """Raise a UserError with all recorded problems, if any."""
        if self._messages:
            listed = (Problem(f"{self._path}: {words}") for words in self._messages)
            raise UserError.several(listed)


@dataclass(frozen=True, eq=False)
class Cells:
    """A table of text: ``rows`` of as many cells as there are ``columns``.

    ``places`` (n,) are the rows' lines in the file, whose first is the header. What a
    sender reads, who needs no table library.
    """

    columns: list[str]
    rows: list[list[str]]
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        place = self.columns.index(name)
        return np.array([row[place] for row in self.rows], dtype=object)


def read_table(path: Path) -> pd.DataFrame:
    """Return the table at ``path`` as a DataFrame.

    The index counts lines (CSV, whose first is the header) or rows (Parquet), as its
    name says. UserError: no such file, of another kind, or no table.
    """
    table = read_cells(path)
    if not isinstance(table, Cells):
        return table
    import pandas as pd

    lines = pd.Index(table.places, name="line")
    return pd.DataFrame(table.rows, lines, table.columns, dtype=str)


def read_cells(path: Path) -> Table:
    """Return the table at ``path``, a CSV file's as its cells."""
    reader = _READERS[validate.one_of(_READERS, suffix=path.suffix.lower())]
    try:
        return reader(path)
    except (UserError, ModuleNotFoundError):
        raise
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # noqa: BLE001 - a reader's errors are of any kind
        words = f"{type(error).__name__}, {error}".strip().replace("\n", " ")
        raise UserError(f"{path} is no such table: {words}.") from None


def _read_csv(path: Path) -> Cells:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = [*csv.reader(stream, skipinitialspace=True, strict=True)]
    if not rows:
        raise ValueError("it is empty")
    header, width = [name.strip() for name in rows[0]], len(rows[0])
    if width == 1 and any(mark in header[0] for mark in ";\t"):
        raise UserError(
            f"{path} has one column: its fields are parted by semicolons or tabs."
            " Export it with commas and decimal points."
        )
    lines = [line for line, row in enumerate(rows[1:], 2) if any(row)]
    for line in lines:
        if len(rows[line - 1]) > width:
            raise ValueError(f"line {line} has more cells than the header, {width}")
    cells = [rows[line - 1] + [""] * (width - len(rows[line - 1])) for line in lines]
    return Cells(header, cells, np.array(lines, dtype=np.int64))


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    frame = pd.read_parquet(path)
    frame.columns = [str(name).strip() for name in frame.columns]
    return frame.set_index(pd.RangeIndex(1, len(frame) + 1, name="row"))


_READERS: Mapping[str, Callable[[Path], Table]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}


def note_missing_columns(
    frame: Table, names: Iterable[str], problems: Problems
) -> bool:
    """Record the missing or repeated columns; return whether any."""
    columns = list(map(str, frame.columns))
    wrong = [name for name in names if columns.count(name) != 1]
    for name in wrong:
        count, hint = columns.count(name), did_you_mean(name, columns)
        words = f"{count} columns are called {name!r}" if count else None
        problems.add(words or f"there is no column {name!r}.{hint}".rstrip("."))
    return bool(wrong)


def read_numbers(frame: Table, names: Sequence[str], problems: Problems) -> Array:
    """Return columns as numbers (n, d); other cells are recorded: NaN."""
    matrix = np.empty((len(frame), len(names)))
    for place, name in enumerate(names):
        if isinstance(frame, Cells):
            values = np.array([_parse_number(cell) for cell in frame[name]], np.float64)
        else:
            import pandas as pd

            column = pd.to_numeric(frame[name], errors="coerce")
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        matrix[:, place] = np.where(np.isfinite(values), values, np.nan)
        problems.add_rows(frame, ~np.isfinite(values), f"{name}: no finite number")
    return matrix


def _parse_number(text: str) -> float:
    """Return the number in a cell, NaN if there is none."""
    try:
        return float(text) if text.isascii() and "_" not in text else np.nan
    except ValueError:
        return np.nan


def read_indicators(
    frame: Table, name: str, categories: Sequence[str], problems: Problems
) -> Array:
    """Return a text column as indicator columns (n, k) of ``categories``.

    A missing text is none of them; any other is noted.
    """
    cells = np.array(_cell_texts(frame, name), dtype=object)
    indicators = cells[:, None] == np.array(categories, dtype=object)
    strange = ~missing_cells(frame, name) & ~indicators.any(axis=1)
    problems.add_rows(frame, strange, f"{name}: none of {', '.join(categories)}")
    return np.asarray(indicators, dtype=np.float64)


def missing_cells(frame: Table, name: str) -> NDArray[np.bool_]:
    """Return which cells of a column are marked as missing."""
    return np.array([text in MISSING for text in _cell_texts(frame, name)], bool)


def indicator_name(name: str, text: str) -> str:
    """Return the name of the indicator column for one category."""
    return f"{name} = {text}"


def read_texts(frame: Table, name: str, problems: Problems) -> list[str]:
    """Return a column as trimmed text; an empty cell is recorded."""
    cells = _cell_texts(frame, name)
    empty = np.array([not text for text in cells], dtype=bool)
    problems.add_rows(frame, empty, f"{name}: nothing")
    return cells


def _cell_texts(frame: Table, name: str) -> list[str]:
    return [
        "" if cell is None or cell != cell else str(cell).strip()  # noqa: PLR0124 - NaN
        for cell in frame[name].tolist()
    ]


def describe_lines(frame: Table, wrong: NDArray[np.bool_]) -> str:
    """Return the numbers of the wrong lines or rows, as text."""
    if isinstance(frame, Cells):
        unit, numbers = "line", frame.places
    elif frame.index.name in {"line", "row"}:
        unit, numbers = str(frame.index.name), frame.index.to_numpy()
    else:
        unit, numbers = "row", np.arange(1, len(frame) + 1)
    places = numbers[wrong]
    listed = ", ".join(map(str, places[:MAX_LISTED]))
    more = f" and {len(places) - MAX_LISTED} more" if len(places) > MAX_LISTED else ""
    return f"{unit}{'s' * (len(places) > 1)} {listed}{more}"
