"""SAS transport files: what is read, and what is refused with which words."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.data.public import nhanes
from curvote.data.public.nhanes import Column
from tests import xport_file
from tests.real_files import MIRROR, needs_mirror

SEQN = Column("SEQN", integral=True)
VALUE = Column("VALUE", missing=True)
TEXT = Column("TEXT", missing=True)
ROWS = 30  # of 24 bytes: nine cards and no padding
FILE = xport_file.file(
    {
        "SEQN": [float(i) for i in range(1, ROWS + 1)],
        "VALUE": [i / 8 for i in range(ROWS)],
        "OTHER": [math.nan] * ROWS,
    }
)
START = len(FILE) - ROWS * 24

numbers = st.floats(-1e70, 1e70).filter(lambda x: x == 0 or abs(x) > 1e-60)


@given(st.lists(numbers | st.just(math.nan), min_size=1, max_size=40))
def test_numbers_come_back_exactly(values: list[float]) -> None:
    """Every double within range, zero and missing too, survives IBM's format."""
    table = nhanes.read_columns(xport_file.file({"VALUE": values}), [VALUE])
    np.testing.assert_array_equal(table["VALUE"], values)


def test_an_exact_zero_is_zero() -> None:
    """The 5.4e-79 that pandas makes of it never reaches a caller."""
    table = nhanes.read_columns(xport_file.file({"VALUE": [0.0, 1.0, 0.0]}), [VALUE])
    assert table["VALUE"].tolist() == [0.0, 1.0, 0.0]


def test_text_that_spells_a_number_is_that_number() -> None:
    """NHANES stores some codes as text; blanks are missing, words are refused."""
    texts = {"SEQN": [1.0, 2.0, 3.0], "TEXT": ["7", "", "12"]}
    table = nhanes.read_columns(xport_file.file(texts), [SEQN, TEXT])
    np.testing.assert_array_equal(table["TEXT"], [7, math.nan, 12])
    assert table["SEQN"].dtype == np.int64
    wrong = xport_file.file({"TEXT": ["7", "x", "y"]})
    with pytest.raises(UserError, match="TEXT is no number in 2, the first row 2"):
        nhanes.read_columns(wrong, [TEXT])


@pytest.mark.parametrize("size", [1, 7, ROWS, 1000])
def test_chunks_are_bounded_and_complete(size: int) -> None:
    """Whatever the size, the chunks together are the table."""
    parts = list(nhanes.read_chunks(FILE, [SEQN, VALUE], size))
    assert max(map(len, parts)) == min(size, ROWS)
    assert np.concatenate([part["SEQN"] for part in parts]).tolist() == [
        *range(1, ROWS + 1)
    ]


@pytest.mark.parametrize("rows", range(1, 12))
@pytest.mark.parametrize("width", [1, 8, 9, 90])
def test_padding_is_told_from_blank_text(rows: int, width: int) -> None:
    """No row is lost or won, however many blanks the last ones hold."""
    texts = ["1".rjust(width), *[""] * (rows - 1)]
    columns = {"SEQN": [float(i + 1) for i in range(rows)], "TEXT": texts}
    table = nhanes.read_columns(xport_file.file(columns), [SEQN, TEXT])
    assert table["SEQN"].tolist() == [*range(1, rows + 1)]


def test_every_truncation_is_refused() -> None:
    """Only a cut that ends both a row and a card looks like a shorter file."""
    whole = {START + 240, START + 480}
    for cut in range(len(FILE)):
        if cut in whole:
            assert len(nhanes.read_columns(FILE[:cut], [SEQN])) == (cut - START) // 24
            continue
        with pytest.raises(UserError, match=r"truncated|no SAS|damaged|no rows"):
            nhanes.read_columns(FILE[:cut], [SEQN])


def test_a_damaged_header_is_a_user_error() -> None:
    """No damaged byte of the header ends in anything but a table or a UserError."""
    generator = np.random.default_rng(1)
    refused = 0
    for _ in range(600):
        damaged = bytearray(FILE)
        damaged[generator.integers(START)] = generator.integers(256)
        try:
            nhanes.read_columns(bytes(damaged), [SEQN, VALUE])
        except UserError:
            refused += 1
    assert refused > 120


def _version_8(data: bytes) -> bytes:
    return data.replace(b"LIBRARY ", b"LIBV8   ").replace(b"MEMBER  ", b"MEMBV8  ")


OTHERS: dict[str, tuple[Callable[[], bytes], str]] = {
    "version 8": (lambda: _version_8(FILE), "version 8; only version 5"),
    "CPORT": (lambda: b"**COMPRESSED** " * 60, "PROC CPORT"),
    "a web page": (lambda: b"<!DOCTYPE html>\n" * 50, "it starts with b'<!DOCTYPE"),
    "empty": (lambda: b"", "no SAS transport file"),
    "no rows": (lambda: FILE[:START], "it has no rows"),
    "a blank card": (lambda: FILE + b" " * 80, "truncated or damaged"),
    "two tables": (lambda: FILE + FILE[240:], "several tables"),
    "no NAMESTR": (lambda: FILE.replace(b"NAMESTR ", b"NAMES   "), "header is damaged"),
    "no column": (lambda: FILE.replace(b"SEQN", b"SEQQ"), "no column SEQN; there are"),
    "twice": (lambda: FILE.replace(b"OTHER", b"VALUE"), "two columns have the same"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_another_file_is_refused(case: str) -> None:
    """Each has its own message."""
    content, message = OTHERS[case]
    with pytest.raises(UserError, match=message):
        nhanes.read_columns(content(), [SEQN, VALUE])


def test_all_wrong_values_are_named_at_once() -> None:
    """Every column and kind, with its count and first row; rows count from 1."""
    columns = {
        "A": [1.0, math.nan, 3.0, math.nan],
        "B": [0.0, 9.0, -1.0, 8.0],
        "C": [1.0, 2.0, 2.5, 3.0],
    }
    needed = [Column("A"), Column("B", 0, 5), Column("C", integral=True)]
    with pytest.raises(UserError) as error:
        nhanes.read_columns(xport_file.file(columns), needed)
    for words in (
        "in rows 1 to 4",
        "A is missing in 2, the first row 2",
        "B is not within [0, 5] in 3, the first row 2 (9)",
        "C is not whole in 1, the first row 3 (2.5)",
    ):
        assert words in str(error.value)


def test_rows_count_on_over_chunks() -> None:
    """A wrong value far down is named by its row in the file."""
    columns = {"A": [0.0] * 50 + [-1.0]}
    with pytest.raises(UserError, match="the first row 51"):
        list(nhanes.read_chunks(xport_file.file(columns), [Column("A", 0)], 8))


@needs_mirror
def test_the_writer_writes_what_sas_writes() -> None:
    """The tests' own files have the very bytes of the published HDL_H.XPT."""
    published = (Path(str(MIRROR)) / "HDL_H.XPT").read_bytes()
    names = ["SEQN", "LBDHDD", "LBDHDDSI"]
    table = nhanes.read_columns(
        published, [Column(name, missing=True) for name in names]
    )
    written = xport_file.file({name: table[name].tolist() for name in names})
    assert len(written) == len(published)
    rows = published.index(b"OBS     HEADER")
    assert written[rows:] == published[rows:]
