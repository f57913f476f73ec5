"""Zip-code digits of *The Elements of Statistical Learning*: 16 x 16, grey in [-1, 1].

Digits scanned by the US Postal Service (Le Cun et al. 1990, NIPS 2). A line has the
label, written as 5.0000, and 256 grey values, separated by blanks.
"""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.data import raw_files, reader
from curvote.data.columns import Paths
from curvote.data.public.images import DIGITS, DigitParameters, Edition, Images, Part
from curvote.data.raw_files import Source, read
from curvote.data.tables.schema import EXAMPLES

SIMULATED = False
SIDE = 16
FIRST_TEST_ID = 7291  # the publisher has so many training images


class Parameters(DigitParameters):
    """Settings of ``source:``: which digits, and which part."""

    name: Literal["zip"] = "zip"


def check(data: bytes, source: Source) -> None:
    """Raise a UserError unless ``data`` has the published form, rows and counts."""
    reader.check_counts(map(str, parse_digits(data)[1]), source)


def parse_digits(data: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the grey values (n, 256) and labels (n,) in ``data``.

    Raises:
        UserError: text, other lengths, a label that is no digit, a value beyond 1.
    """
    table = _parse_numbers(data)
    digits, pixels = table[:, 0], table[:, 1:]
    no_digit = ~np.isin(digits, np.arange(10))
    no_grey = ~(np.abs(pixels) <= 1).all(axis=1)  # also true where a value is NaN
    problems = [
        f"{what} in {len(lines)} lines: {', '.join(map(str, lines[:EXAMPLES]))}"
        for what, lines in (
            ("label that is no digit", np.flatnonzero(no_digit) + 1),
            ("grey value missing or outside [-1, 1]", np.flatnonzero(no_grey) + 1),
        )
        if len(lines)
    ]
    if problems:
        raise UserError(f"{'; '.join(problems)}.")
    return pixels, digits.astype(np.int64)


def _parse_numbers(data: bytes) -> NDArray[np.float64]:
    import pandas as pd

    try:
        frame = pd.read_csv(io.BytesIO(data), header=None, sep=r"\s+")
        table = frame.to_numpy(dtype=np.float64)
    except ValueError as error:  # pandas' parser errors and bad UTF-8 are ValueErrors
        raise UserError(f"it is no table of numbers: {error}") from error
    if table.shape[1] != SIDE**2 + 1:
        raise UserError(f"its lines have {table.shape[1]} values, not {SIDE**2 + 1}.")
    return table


def _file_name(part: Part) -> str:
    return f"zip-{part}"


def _read_part(_: Parameters, part: Part, paths: Paths) -> Images:
    pixels, labels = parse_digits(read(paths[_file_name(part)]))
    first = FIRST_TEST_ID if part == "test" else 0
    return Images(pixels, labels, np.arange(first, first + len(labels)))


EDITION = Edition(
    title="Zip-code digits",
    class_names=DIGITS,
    side=SIDE,
    lower=-1,
    upper=1,
    why="the publisher scaled grey values to [-1, 1]",
    names=lambda _, part: (_file_name(part),),
    counts=lambda _, part: raw_files.find(_file_name(part)).counts,
    read=_read_part,
)
files, size, width = EDITION.files, EDITION.size, EDITION.width
facts, clients, classes = EDITION.facts, EDITION.clients, EDITION.classes
