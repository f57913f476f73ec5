"""Small SAS transport files of version 5, as SAS writes them: cards and IBM floats."""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

DATE = b"05OCT15:09:34:43"
ZEROS = b"0" * 30 + b"  "
MISSING = b"." + bytes(7)


def ibm(value: float) -> bytes:
    """Return the IBM double of ``value``: sign, exponent of 16 plus 64, fraction."""
    if math.isnan(value):
        return MISSING
    if value == 0:
        return bytes(8)
    fraction, exponent = math.frexp(abs(value))
    digits = -(-exponent // 4)
    mantissa = int(fraction * 2 ** (56 + exponent - 4 * digits))
    return struct.pack(">Q", (value < 0) << 63 | (digits + 64) << 56 | mantissa)


def ibm_array(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `ibm` of every value, as (n,) of eight bytes; for large files."""
    known, index = np.unique(values, return_inverse=True)
    return np.array([ibm(value) for value in known.tolist()], dtype="V8")[index]


def file(columns: Mapping[str, Sequence[float] | Sequence[str]]) -> bytes:
    """Return a transport file with these columns; text is as wide as its longest."""
    cells = {name: _cells(values) for name, values in columns.items()}
    rows = np.rec.fromarrays(list(cells.values())).tobytes()
    widths = {name: column.itemsize for name, column in cells.items()}
    kinds = {name: 1 + (column.dtype.kind == "S") for name, column in cells.items()}
    return header(widths, kinds) + cards(rows)


def header(widths: Mapping[str, int], kinds: Mapping[str, int]) -> bytes:
    """Return the library, member and variable headers (kind 1 number, 2 text)."""
    names, place = b"", 0
    for i, (name, width) in enumerate(widths.items()):
        names += _variable(name, kinds[name], width, i + 1, place)
        place += width
    system = b"9.3     W32_7PRO".ljust(40) + DATE
    return b"".join(
        [
            _record(b"LIBRARY", ZEROS),
            b"SAS     SAS     SASLIB  " + system,
            DATE.ljust(80),
            _record(b"MEMBER", b"0" * 17 + b"1600000000140  "),
            _record(b"DSCRPTR", ZEROS),
            b"SAS     FAKE    SASDATA " + system,
            DATE.ljust(80),
            _record(b"NAMESTR", b"000000%04d" % len(widths) + b"0" * 20 + b"  "),
            cards(names),
            _record(b"OBS", ZEROS),
        ]
    )


def cards(content: bytes) -> bytes:
    """Return ``content`` filled up with blanks to whole cards of 80 bytes."""
    return content + b" " * (-len(content) % 80)


def _record(kind: bytes, rest: bytes) -> bytes:
    record = b"HEADER RECORD*******" + kind.ljust(8) + b"HEADER RECORD!!!!!!!" + rest
    return record.ljust(80)


def _variable(name: str, kind: int, width: int, number: int, place: int) -> bytes:
    text = name.encode().ljust(8) + b"label".ljust(40) + b" " * 8
    start = struct.pack(">hhhh", kind, 0, width, number) + text
    middle = struct.pack(">hhh2s", 0, 0, 0, b"") + b" " * 8 + struct.pack(">hh", 0, 0)
    return start + middle + struct.pack(">l", place) + bytes(52)


def _cells(values: Sequence[float] | Sequence[str]) -> np.ndarray[Any, Any]:
    if isinstance(values[0], str):
        width = max(1, *(len(str(value)) for value in values))
        filled = [str(value).ljust(width).encode() for value in values]
        return np.array(filled, dtype=f"S{width}")
    return ibm_array(np.asarray(values, dtype=np.float64))
