"""NHANES 2013-2014: a woman's movement over the 24 hours, and whether her HDL is low.

The format is SAS's technical note TS-140: cards of 80 bytes, then rows of IBM floating
point numbers and text, padded with blanks to a whole card. It has no row count.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 100_000
CARD = 80
# pandas turns an exact zero into 16**-65, the least positive IBM number.
ZERO_BELOW = 1e-70

_LIBRARY = b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!"
_LIBRARY_8 = b"HEADER RECORD*******LIBV8"
_MEMBER = b"HEADER RECORD*******MEMBER  HEADER RECORD!!!!!!!"
_NAMES = b"HEADER RECORD*******NAMESTR HEADER RECORD!!!!!!!"
_COMPRESSED = b"**COMPRESSED**"
_NAME_SIZES = (b"140", b"136", b"135")


@dataclass(frozen=True)
class Column:
    """A required numeric column, and the range of its possible values.

    ``integral`` columns hold whole numbers and become int64, unless values may be
    ``missing``; the others are float64 with NaN for a missing value.
    """

    name: str
    lower: float = -inf
    upper: float = inf
    integral: bool = False
    missing: bool = False


def read_columns(data: bytes, columns: Sequence[Column]) -> pd.DataFrame:
    """Return the ``columns`` of the table in ``data``, one row a record.

    Raises:
        UserError: see `read_chunks`.
    """
    import pandas as pd

    return pd.concat(read_chunks(data, columns), ignore_index=True)


def read_chunks(
    data: bytes, columns: Sequence[Column], size: int = CHUNK
) -> Iterator[pd.DataFrame]:
    """Yield the ``columns`` of the table in ``data``, at most ``size`` rows at a time.

    Text that spells a number counts as that number, an empty cell as missing. Beside
    ``data`` itself only one chunk is held.

    Raises:
        UserError: another format or version, a truncated or damaged file, several
            tables in one, a missing column; values that cannot be, of all columns at
            once, in the first chunk that has some.
    """
    reader = _open_table(data, size)
    _check_names(reader.columns, [column.name for column in columns])
    start = 0
    for frame in reader:
        yield _check_columns(frame, columns, start)
        start += len(frame)


def _open_table(data: bytes, size: int) -> Any:
    import pandas as pd

    _check_header(data)
    try:
        reader: Any = pd.read_sas(
            io.BytesIO(data), format="xport", encoding="ISO-8859-1", chunksize=size
        )
    except (ValueError, TypeError, LookupError, ArithmeticError, struct.error) as error:
        raise UserError(f"its SAS transport header is damaged: {error}.") from error
    # pandas takes eight blanks anywhere in the last card for padding: a row is lost.
    reader.nobs = _count_rows(data, reader.record_start, reader.record_length)
    return reader


def _check_header(data: bytes) -> None:
    """Raise a UserError unless ``data`` starts as version 5 does, in whole cards."""
    first = data[:CARD]
    if first.startswith(_LIBRARY_8):
        raise UserError(
            "it is a SAS transport file of version 8; only version 5 (the XPORT engine"
            " of SAS) can be read."
        )
    if _COMPRESSED in first:
        raise UserError("it was written by PROC CPORT; the XPORT engine is needed.")
    if not first.startswith(_LIBRARY):
        raise UserError(f"it is no SAS transport file: it starts with {first[:24]!r}.")
    if len(data) % CARD:
        raise UserError(
            f"it is truncated: {len(data)} bytes are no whole number of {CARD}-byte"
            " cards."
        )
    complete = data[3 * CARD :].startswith(_MEMBER) and data[7 * CARD :].startswith(
        _NAMES
    )
    if not complete or data[4 * CARD - 5 : 4 * CARD - 2] not in _NAME_SIZES:
        raise UserError("its SAS transport header is damaged or breaks off.")


def _count_rows(data: bytes, start: int, width: int) -> int:
    """Return the number of rows of ``width`` bytes; blanks fill up the last card."""
    if width < 1:
        raise UserError("its SAS transport header is damaged: rows have no width.")
    if data.find(_MEMBER, start) >= 0:
        raise UserError("it holds several tables; one is expected.")
    last = data[max(start, len(data) - CARD) :]
    end = len(data) - len(last) + len(last.rstrip(b" "))
    rows = ceil((end - start) / width)
    if rows < 1:
        raise UserError("it has no rows.")
    rest = len(data) - start - rows * width
    if not 0 <= rest < CARD:
        raise UserError(
            f"it is truncated or damaged: row {rows} of {width} bytes does not end"
            " where the file does."
        )
    return rows


def _check_names(names: Sequence[str], needed: Sequence[str]) -> None:
    if missing := [name for name in needed if name not in names]:
        raise UserError(
            f"wrong schema: no column {', '.join(missing)}; there are"
            f" {', '.join(names)}."
        )
    if len(set(names)) < len(names):
        raise UserError("wrong schema: two columns have the same name.")


def _check_columns(
    frame: pd.DataFrame, columns: Sequence[Column], start: int
) -> pd.DataFrame:
    """Return the ``columns`` as numbers; ``start`` rows came before this chunk."""
    import pandas as pd

    numbers, problems = {}, []
    for column in columns:
        values, unreadable = _parse_numbers(frame[column.name])
        problems += list(_find_violations(column, values, unreadable, start))
        numbers[column.name] = values
    if problems:
        raise UserError(
            f"wrong values in rows {start + 1} to {start + len(frame)}:"
            f" {'; '.join(problems)}."
        )
    integral = [c.name for c in columns if c.integral and not c.missing]
    return pd.DataFrame(numbers).astype(dict.fromkeys(integral, np.int64))


def _parse_numbers(
    cells: pd.Series[Any],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return cells as numbers (NaN = missing), and which cannot be read."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(cells.dtype):
        values = cells.to_numpy(dtype=np.float64, copy=True)
        values[np.abs(values) < ZERO_BELOW] = 0.0
        return values, np.zeros(len(values), dtype=np.bool_)
    text = cells.str.strip()
    values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    return values, np.isnan(values) & (text != "").to_numpy(dtype=np.bool_)


def _find_violations(
    column: Column,
    values: NDArray[np.float64],
    unreadable: NDArray[np.bool_],
    start: int,
) -> Iterator[str]:
    """Yield each kind of violation with its count and its first row."""
    missing = np.isnan(values)
    outside = ~missing & ~((column.lower <= values) & (values <= column.upper))
    kinds = {
        "no number": unreadable,
        "missing": missing & ~unreadable & (not column.missing),
        f"not within [{column.lower:g}, {column.upper:g}]": outside,
        "not whole": ~missing & ~outside & column.integral & (values % 1 != 0),
    }
    for kind, where in kinds.items():
        if where.any():
            first = int(where.argmax())
            yield (
                f"{column.name} is {kind} in {where.sum()}, the first row"
                f" {start + first + 1} ({values[first]:g})"
            )
