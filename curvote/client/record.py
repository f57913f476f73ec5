"""Records of an owner: curve and label read from files in the task's form.

Form is what the owner can mend without telling anybody: a file that can be read, one
number (or an empty place, NaN, or infinity) for each grid point, and a label that is
one of the task's words. It is checked before anything is reserved, and a complaint
goes to the owner alone.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.wire.task import Task

READERS = (".csv", ".parquet")
# What else than an empty place says that a value is missing.
MISSING_MARKS = ("", "na", "n/a", "null", "none", "<na>", "nan", "-nan", "+nan", "nat")
Rows = list[list[Any]]


@dataclass(frozen=True, eq=False)
class OwnerRecord:
    """An owner's record: ``values`` (T,), NaN where missing, and its label."""

    values: NDArray[np.float64]
    label: int


def read_record(path: Path, label: str, task: Task) -> OwnerRecord:
    """Return the owner's record for ``task``; UserError if it is malformed."""
    validate.one_of(task.classes, label=label)
    points = task.encoding.projection.matrix.shape[1]
    return OwnerRecord(read_values(path, points), task.classes.index(label))


def read_values(path: Path, points: int) -> NDArray[np.float64]:
    """Return the ``points`` values (T,) in a CSV or Parquet file, NaN where missing.

    The file holds one row or one column, with or without a header of words. Each cell
    is a number, however large, or says that it is missing. Anything else is a UserError
    about the file's form; it says no value, and depends on none.
    """
    rows = _value_rows(path, points)
    width = max((len(row) for row in rows), default=0)
    if min(len(rows), width) != 1:
        raise UserError(
            f"{path} holds {len(rows)} rows and {width} columns of values; a curve is"
            " one row or one column (a header may stand above it, if it is words)."
        )
    cells = rows[0] if len(rows) == 1 else [row[0] for row in rows]
    if len(cells) != points:
        raise UserError(
            f"{path} holds {len(cells)} values; the task's grid has {points} points."
        )
    return np.array([_check_cell(path, i, cell) for i, cell in enumerate(cells)])


def _value_rows(path: Path, points: int) -> Rows:
    """Return the rows of values, without trailing empty lines."""
    rows = _read_rows(path)
    if max((len(row) for row in rows), default=0) > 1:
        return [row for row in rows if row]
    while len(rows) > points and not rows[-1]:
        rows = rows[:-1]
    return [row or [""] for row in rows]  # a value is missing where a line is empty


def _read_rows(path: Path) -> Rows:
    """Return the cells of every data row of a file."""
    reader = _TABLES.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path} must end in one of {', '.join(READERS)}.")
    try:
        return reader(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # noqa: BLE001 - a reader's errors are of any kind
        kind = type(error).__name__
        raise UserError(f"{path} is no such table: {kind} while reading it.") from None


def _read_csv(path: Path) -> Rows:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows: Rows = list(csv.reader(stream, skipinitialspace=True, strict=True))
    if not rows or len({len(row) for row in rows if row}) > 1:
        raise ValueError("no rows, or rows of different lengths")
    header = rows[0] and all(_parse_cell(cell) is None for cell in rows[0])
    return rows[1:] if header and len(rows) > 1 else rows


def _read_parquet(path: Path) -> Rows:
    import pandas as pd

    rows: Rows = pd.read_parquet(path).to_numpy(dtype=object).tolist()
    return rows


_TABLES = {".csv": _read_csv, ".parquet": _read_parquet}


def _parse_cell(cell: Any) -> float | None:
    """Return the number in a cell, NaN if missing, None if it is neither."""
    if str(cell).strip().lower() in MISSING_MARKS:
        return math.nan
    if not isinstance(cell, str | Real | Decimal):
        return None
    try:
        return float(cell)
    except OverflowError:  # a number beyond what a float can hold
        return -math.inf if str(cell).startswith("-") else math.inf
    except ValueError:
        return None


def _check_cell(path: Path, index: int, cell: Any) -> float:
    value = _parse_cell(cell)
    if value is None:
        raise UserError(
            f"{path}: value {index} (counted from 0) is no number, and does not say"
            " that it is missing (an empty place or NaN)."
        )
    return value
