"""A table that somebody gives, CSV or Parquet: read by names, every problem at once."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.errors import Problem, UserError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 10  # lines that a problem names, of however many
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "?")
Array = NDArray[np.float64]
Table: TypeAlias = "Cells | pd.DataFrame"


class Problems:
    """What is wrong with the table at ``path``, gathered until `check`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: list[str] = []

    def add(self, words: str) -> None:
        """Note one problem."""
        self._found.append(words if words.endswith("?") else f"{words}.")

    def at(self, frame: Table, wrong: NDArray[np.bool_], words: str) -> None:
        """Note what is wrong with some rows of a table, if any are."""
        if wrong.any():
            self.add(f"{words} in {lines(frame, wrong)}")

    def check(self) -> None:
        """Refuse (UserError) the table with all its problems."""
        if self._found:
            every = (Problem(f"{self._path}: {words}") for words in self._found)
            raise UserError.several(every)


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


def read(path: Path) -> pd.DataFrame:
    """Return the table at ``path``: its cells as they stand there.

    The index counts lines (CSV, whose first is the header) or rows (Parquet), as its
    name says. UserError: no such file, of another kind, or no table.
    """
    found = given(path)
    if not isinstance(found, Cells):
        return found
    import pandas as pd

    lines = pd.Index(found.places, name="line")
    return pd.DataFrame(found.rows, lines, found.columns, dtype=str)


def given(path: Path) -> Table:
    """Return the table at ``path`` as `read` does, but a CSV file's as its cells."""
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


def _csv(path: Path) -> Cells:
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


def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    frame = pd.read_parquet(path)
    frame.columns = [str(name).strip() for name in frame.columns]
    return frame.set_index(pd.RangeIndex(1, len(frame) + 1, name="row"))


_READERS: Mapping[str, Callable[[Path], Table]] = {".csv": _csv, ".parquet": _parquet}


def missing(frame: Table, names: Iterable[str], problems: Problems) -> bool:
    """Note which of the ``names`` are not those of one column each; say if any."""
    there, wrong = list(map(str, frame.columns)), False
    for name in names:
        count = there.count(name)
        if count != 1:
            wrong = True
            hint = did_you_mean(name, there) if there else ""
            words = f"{count} columns are called {name!r}" if count else None
            problems.add(words or f"there is no column {name!r}.{hint}".rstrip("."))
    return wrong


def numbers(frame: Table, names: Sequence[str], problems: Problems) -> Array:
    """Return columns as numbers (n, d), in this order; what is none is noted: NaN."""
    found = np.empty((len(frame), len(names)))
    for place, name in enumerate(names):
        values = _numbers(frame, name)
        found[:, place] = np.where(np.isfinite(values), values, np.nan)
        problems.at(frame, ~np.isfinite(values), f"{name}: no finite number")
    return found


def _numbers(frame: Table, name: str) -> Array:
    if isinstance(frame, Cells):
        return np.array([_number(cell) for cell in frame[name]], dtype=np.float64)
    import pandas as pd

    column = pd.to_numeric(frame[name], errors="coerce")
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _number(text: str) -> float:
    """Return the number that a cell holds, NaN if it is none; no 1_000, no other 1."""
    try:
        return float(text) if text.isascii() and "_" not in text else np.nan
    except ValueError:
        return np.nan


def choices(frame: Table, name: str, known: Sequence[str], problems: Problems) -> Array:
    """Return a column of text as columns of 0 and 1, (n, k), one for each ``known``.

    A missing text is none of them; any other is noted.
    """
    given = np.array([_text(cell) for cell in frame[name].tolist()], dtype=object)
    told = given[:, None] == np.array(known, dtype=object)
    strange = ~missing_in(frame, name) & ~told.any(axis=1)
    problems.at(frame, strange, f"{name}: none of {', '.join(known)}")
    return np.asarray(told, dtype=np.float64)


def missing_in(frame: Table, name: str) -> NDArray[np.bool_]:
    """Say which cells of a column tell that their value is missing."""
    return np.array([_text(cell) in MISSING for cell in frame[name].tolist()], bool)


def category(name: str, text: str) -> str:
    """Return what the column of 0 and 1 for one text of another column is called."""
    return f"{name} = {text}"


def texts(frame: Table, name: str, problems: Problems) -> list[str]:
    """Return a column as text without margins; an empty place is noted."""
    found = [_text(cell) for cell in frame[name].tolist()]
    empty = np.array([not text for text in found], dtype=bool)
    problems.at(frame, empty, f"{name}: nothing")
    return found


def _text(cell: Any) -> str:
    if cell is None or cell != cell:  # noqa: PLR0124 - NaN, NaT
        return ""
    return str(cell).strip()


def lines(frame: Table, wrong: NDArray[np.bool_]) -> str:
    """Return which lines, or else rows from 1 on, are wrong: some of them."""
    if isinstance(frame, Cells):
        unit, known = "line", frame.places
    elif frame.index.name in {"line", "row"}:
        unit, known = str(frame.index.name), frame.index.to_numpy()
    else:
        unit, known = "row", np.arange(1, len(frame) + 1)
    places = known[wrong]
    shown = ", ".join(map(str, places[:SHOWN]))
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return f"{unit}{'s' * (len(places) > 1)} {shown}{more}"
