"""A client's own curve, read from a file: the one thing that never leaves as it is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError

READERS = (".csv", ".parquet")


def read_curve(path: Path, points: int) -> NDArray[np.float64]:
    """Return the curve (1, ``points``) in a CSV or Parquet file.

    The file holds one row or one column of finite numbers, with or without a header.
    Anything else is a UserError that says what is wrong, never a value.
    """
    rows = _rows(path)
    if len(rows) > 1 and all(_is_word(cell) for cell in rows[0]):
        rows = rows[1:]  # the header
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
    return np.array([[_number(path, i, cell) for i, cell in enumerate(cells)]])


def _rows(path: Path) -> list[list[Any]]:
    """Return the cells of every row; a Parquet file's column names are no row."""
    import pandas as pd
    import pyarrow as pa

    if path.suffix.lower() not in READERS:
        raise UserError(f"{path} must end in one of {', '.join(READERS)}.")
    try:
        if path.suffix.lower() == ".parquet":
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(
                path, header=None, dtype=str, skipinitialspace=True, encoding="utf-8"
            )
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, pa.ArrowException) as error:
        raise UserError(f"{path} is no such table: {str(error)[:100]}.") from None
    rows: list[list[Any]] = frame.to_numpy(dtype=object).tolist()
    return rows


def _is_word(cell: Any) -> bool:
    return isinstance(cell, str) and not _is_number(cell)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _number(path: Path, index: int, cell: Any) -> float:
    value = float(cell) if _is_number(cell) else math.nan
    if not math.isfinite(value):
        kind = "is no number" if _is_word(cell) else "is missing or infinite"
        raise UserError(
            f"{path}: value {index} (counted from 0) {kind}; all must be finite."
        )
    return value
