"""Published tables: what is read, and how every violation is told."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import InternalError, UserError
from curvote.data import reader
from curvote.data.columns import Feature
from curvote.data.reader import PublishedTable
from tests import tables
from tests.tables import SCHEMA

BROKEN = {  # column, cell -> the words for it
    (1, "heavy"): "Weight, not a number",
    (1, "nan"): "Weight, not a number",
    (1, "1;5"): "Weight, not a number",
    (1, "-1"): "Weight, impossible (not in 0 to 600)",
    (1, "1e999"): "Weight, impossible (not in 0 to 600)",
    (2, "rome"): "Town, not one of Bonn, Oslo, Rome",
    (3, "2.5"): "Visits, not a whole number",
    (3, "401"): "Visits, impossible (not in 0 to 400)",
    (4, "maybe"): "Ill, not one of no, yes, very",
    (4, ""): "Ill, not one of no, yes, very",
}


class Invented(PublishedTable[reader.TableParameters]):
    schema = SCHEMA


def read(data: bytes, schema: reader.TableSchema = SCHEMA) -> pd.DataFrame:
    """Return the checked table."""
    return reader.check_table(reader.parse_table(data, schema), schema)


def refusal(data: bytes, schema: reader.TableSchema = SCHEMA) -> str:
    """Return the message with which the table is refused."""
    with pytest.raises(UserError) as error:
        read(data, schema)
    return str(error.value)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "cut", "\n\n"])
def test_cells_come_as_written(end: str, tail: str) -> None:
    """Line ends, a missing or doubled final newline change nothing, nor does a BOM."""
    cells = tables.rows()
    data = tables.text(cells, end=end)
    data = data[: -len(end)] if tail == "cut" else data + tail.encode()
    for given in (data, b"\xef\xbb\xbf" + data):
        frame = reader.parse_table(given, SCHEMA)
        assert frame.to_numpy().tolist() == cells
        assert frame.columns.tolist() == tables.HEADER.split(",")
        assert frame.index.tolist() == list(range(2, len(cells) + 2))


def test_numbers_codes_and_labels_are_those_of_the_cells() -> None:
    """Numbers as floats, categories alphabetically, marks as NaN, labels as 0 and 1."""
    cells = tables.rows()
    frame = read(tables.text(cells))
    assert frame.columns.tolist() == ["Weight", "Town", "Visits", "Ill"]
    for name, column in (("Weight", 1), ("Visits", 3)):
        texts = [row[column] for row in cells]
        expected = [float(t) if t not in SCHEMA.marks else np.nan for t in texts]
        np.testing.assert_array_equal(frame[name], expected)
    codes = {"Bonn": 0.0, "Oslo": 1.0, "Rome": 2.0, "": np.nan}
    np.testing.assert_array_equal(frame["Town"], [codes[row[2]] for row in cells])
    assert frame["Ill"].tolist() == [int(row[4] != "no") for row in cells]


def test_a_file_without_header_has_the_columns_in_their_order() -> None:
    """Its first line is line 1; without an order the label stands last."""
    bare = replace(SCHEMA, header=False, order=tuple(tables.HEADER.split(",")))
    cells = tables.rows()
    data = tables.text(cells).partition(b"\n")[2]
    np.testing.assert_array_equal(read(data, bare), read(tables.text(cells)))
    assert reader.parse_table(data, bare).index[0] == 1
    assert replace(bare, order=()).columns == ["Weight", "Town", "Visits", "Ill"]


def test_columns_may_stand_in_any_order() -> None:
    """A header says which column is which."""
    cells = tables.rows()
    turned = [row[::-1] for row in cells]
    header = ",".join(tables.HEADER.split(",")[::-1])
    assert read(tables.text(turned, header)).equals(read(tables.text(cells)))


def test_values_beyond_public_bounds_are_no_violation() -> None:
    """They are clipped later; a number that means missing is never impossible."""
    assert read(b"Row,Weight,Town,Visits,Ill\n1,599,Rome,-9,no\n2,0,Oslo,399,no\n").size


@pytest.mark.parametrize("seed", range(8))
def test_every_violation_is_told_at_once_with_its_line(seed: int) -> None:
    """Random cells are broken: kinds, counts and lines are exactly those, 10 shown."""
    rng = np.random.default_rng(seed)
    cells = tables.rows(200, seed)
    expected: dict[str, list[str]] = {}
    for row in np.sort(rng.choice(200, size=rng.integers(1, 120), replace=False)):
        (column, cell), kind = list(BROKEN.items())[rng.integers(len(BROKEN))]
        cells[row][column] = cell
        expected.setdefault(kind, []).append(f"line {row + 2} {cell!r}")
    found = refusal(tables.text(cells)).split("\n")
    assert found[0] == "wrong table:"
    told = dict(line.removeprefix("- ").split(": ", 1) for line in found[1:])
    assert told.keys() == expected.keys()
    for kind, examples in expected.items():
        count, shown = told[kind].split(" ", 1)
        assert int(count) == len(examples)
        assert shown.startswith(f"({', '.join(examples[:10])}")
        assert shown.count("line ") == min(10, len(examples))
        rest = re.search(r", and (\d+) more", shown)
        assert (int(rest[1]) if rest else 0) == max(0, len(examples) - 10)


def test_wrong_columns_and_wrong_cells_are_told_together() -> None:
    """A missing column, one too many, and a broken cell in one message."""
    cells = tables.rows(30)
    cells[4][1] = "x" * 50
    message = refusal(tables.text(cells, "Row,Weight,Place,Visits,Ill"))
    assert "- columns that are missing: 1 (Town)" in message
    assert "- columns that are not expected: 1 (Place)" in message
    assert f"- Weight, not a number: 1 (line 6 '{'x' * 40}...')" in message


UNREADABLE = {
    b"": "no row",
    b"\n\n": "no row",
    b"Row;Weight;Town;Visits;Ill\n": "one field, 'Row;Weight;Town;Visits;Ill'",
    b"Row,Weight,Town,Visits,Ill\n1,\xff,Rome,3,no\n": "line 2 is no UTF-8",
    b'Row,Weight,Town,Visits,Ill\n1,"6,Rome,3,no\n': "line 2: unexpected end",
    b"Row,Weight,Weight,Town,Ill\n": "more than one column Weight",
    b"Row,Weight,Town,Visits,Ill\n1,6,Rome,3,no\n1,6\n\n1,6,Rome,3,no,1\n": (
        "rows without 5 fields separated by ',': 3 (line 3 has 2, line 4 has 0, line 5"
        " has 6)"
    ),
}


@pytest.mark.parametrize("data", UNREADABLE)
def test_what_is_no_table_is_refused(data: bytes) -> None:
    """The message says what is wrong and on which lines."""
    assert UNREADABLE[data] in refusal(data)


def test_counts_must_be_those_published() -> None:
    """Rows and each label, as the file spells it; all differences are told."""
    labels = [row[4] for row in tables.rows()]
    given = {name: labels.count(name) for name in SCHEMA.labels}
    data = tables.text(tables.rows())
    Invented().check(data, tables.source("t", 60, **given))
    other = given | {"no": given["no"] + 1, "dead": 2}
    message = (
        f"counts: 60 rows instead of 61, dead 0 instead of 2, no {given['no']}"
        f" instead of {given['no'] + 1}\\."
    )
    with pytest.raises(UserError, match=message):
        Invented().check(data, tables.source("t", 61, **other))


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower": 3.0},
        {"upper": np.inf},
        {"lower": np.nan},
        {"centre": 2.5},
        {"categories": ("b", "a")},
        {"categories": ("a", "a")},
    ],
)
def test_a_feature_in_disorder_is_our_bug(wrong: dict[str, object]) -> None:
    """Bounds are finite and increase, the centre lies between, codes are in order."""
    right = Feature("f", "kg", 0, 2, "scales", centre=2)
    with pytest.raises(InternalError, match=r"feature f|of f"):
        replace(right, **wrong)
