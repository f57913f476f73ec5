"""Wrong long files are refused with everything that is wrong, in one pass."""

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from curvote.base import table_file
from curvote.base.errors import UserError
from curvote.data.tables import cells, curves
from tests import long_file
from tests.long_file import PARAMETERS, parameters, read, write

TABLE = long_file.frame().astype(object)


def changed(*changes: tuple[int, str, object]) -> pd.DataFrame:
    """Return the table with some cells changed; rows count from 1."""
    table = TABLE.copy()
    for row, column, value in changes:
        table.loc[row - 1, column] = value
    return table


def problems(path: Path) -> list[str]:
    """Return what is said about a file, by `facts` and by `pieces` alike."""
    found = []
    for attempt in (curves.facts, lambda *given: list(curves.pieces(*given))):
        with pytest.raises(UserError) as error:
            attempt(PARAMETERS, {"path": path})
        found.append([problem.message for problem in error.value.problems])
    assert found[0] == found[1]
    return [text.removeprefix(f"{path}: ") for text in found[0]]


@pytest.mark.parametrize("rows", [5, curves.ROWS])
def test_everything_is_reported_at_once(tmp_path, monkeypatch, rows):
    """Each kind has its count and its rows, in whatever block they stand."""
    monkeypatch.setattr(curves.LongReader.blocks, "__defaults__", (rows,))
    last = len(TABLE)
    first = TABLE["who"].ne(TABLE["who"].shift()).to_numpy().nonzero()[0] + 1
    start = int(first[3])
    assert TABLE.loc[start, "who"] == TABLE.loc[start - 1, "who"]
    table = changed(
        (2, "hour", "noon"),
        (last, "hour", ""),
        (3, "steps", "nan"),
        (last - 1, "steps", "inf"),
        (4, "who", ""),
        (5, "group", ""),
        (start, "group", "maybe"),
        (start + 1, "hour", TABLE.loc[start - 1, "hour"]),
    )
    found = problems(write(table, tmp_path, "long.csv"))
    labels = "needs two labels, one of them 'ill'; it has (3): 'ill', 'maybe', 'well'"
    labels += ", with more than two, write classes: [a, b, c] instead of positive"
    changes = f"the client that begins at line {start + 1}"
    expected = {
        f"hour is not a finite number (2): line 3 'noon', line {last + 1} is empty.",
        f"steps is not a finite number (2): line 4 'nan', line {last} 'inf'.",
        "who is empty (1): line 5.",
        "group is empty (1): line 6.",
        f"group changes within a client (1): {changes}.",
        f"hour repeats a time of the same client (1): line {start + 2}.",
        f"column 'group' {labels}.",
    }
    assert {*found} >= expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("rows", [7, 2**17])
def test_at_most_ten_examples_are_shown(tmp_path, monkeypatch, rows):
    """The others are counted, also when the file is read a few rows at a time."""
    monkeypatch.setattr(table_file, "_ROWS", rows)
    (found,) = problems(write(long_file.frame().assign(steps="?"), tmp_path))
    assert found.startswith(f"steps is not a finite number ({len(TABLE)}): row 1 '?',")
    assert found.count("row") == 10
    assert found.endswith(f"row 10 '?' and {len(TABLE) - 10} more.")


def test_rows_of_another_length_are_reported_alone(tmp_path: Path) -> None:
    """Rows after one that is left out would be counted wrongly."""
    path = tmp_path / "long.csv"
    path.write_text("who,hour,steps,group\n1,2,3\n1,2,x,ill\n1,2,3,4,5\n")
    assert problems(path) == ["lines without 4 fields (2): line 2 has 3, line 4 has 5."]


def test_missing_values_of_parquet_are_reported(tmp_path: Path) -> None:
    """NaN and null are no measurements."""
    table = long_file.frame()
    table.loc[[1, 4], "steps"] = np.nan
    (found,) = problems(write(table, tmp_path))
    assert found.startswith("steps is not a finite number (2): row 2")


@pytest.mark.parametrize("rows", [1, 9, curves.ROWS])
def test_an_id_that_comes_back_is_refused(tmp_path, monkeypatch, rows):
    """A client's rows must follow each other; the message says what to do."""
    monkeypatch.setattr(curves.LongReader.blocks, "__defaults__", (rows,))
    moved = pd.concat([TABLE.iloc[1:], TABLE.iloc[:1]])
    assert TABLE.loc[0, "who"] == TABLE.loc[1, "who"]
    (found,) = problems(write(moved, tmp_path, "long.csv"))
    said = f"another client's rows; sort the file by id{cells.SPELT} (1)"
    assert f"comes back after {said}" in found
    assert found.endswith(f"line {len(TABLE) + 1}.")


def test_a_file_sorted_by_time_is_refused_early(tmp_path, monkeypatch):
    """Not at its end, when the ids of all rows would be in memory."""
    monkeypatch.setattr(curves.LongReader.blocks, "__defaults__", (100,))
    monkeypatch.setattr(table_file, "_ROWS", 100)
    seen = []
    plain = cells.Identifiers.add
    monkeypatch.setattr(
        cells.Identifiers,
        "add",
        lambda self, ids, *more: (seen.append(len(ids)), plain(self, ids, *more)),
    )
    many = pd.concat([TABLE] * 20, ignore_index=True)
    path = write(many.assign(who=np.arange(len(many)) % 300 + 1), tmp_path, "a.parquet")
    with pytest.raises(UserError, match="sort the file by id"):
        read(path)
    assert 300 < sum(seen) <= 1000 < len(many)


@pytest.mark.parametrize("rows", [7, 2**17])
def test_two_texts_with_one_number_are_refused(tmp_path, monkeypatch, rows):
    """A digest that is shared is no identity, also between neighbours."""
    monkeypatch.setattr(table_file, "_ROWS", rows)
    monkeypatch.setattr(
        cells, "text_digest", lambda text: bytes(8) + text.encode().ljust(8, b"-")
    )
    table = long_file.frame()
    named = table.assign(who=table["who"].map(lambda who: f"{who:07d}p"))
    found = problems(write(named, tmp_path))
    assert "two ids have one 63-bit number; rename one of the two (39)" in found[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as csv"),
        (b"who,hour,steps,group\n", "has no rows"),
        (b"who,hour,step\n1,2,3\n", "no column 'steps'. Did you mean 'step'"),
        (b"who,hour,steps,hour,group\n1,2,3,4,ill\n", "2 columns named 'hour'"),
        (b"who,hour,steps,group\n1,2,3\n1,2,3,a,b\n", "without 4 fields .2.: line 2"),
        (b"who,hour,steps,group\n1,2,3,a\n\xff,2,3,\xff\n", "line 3 is not UTF-8"),
        (b"\x1f\x8bjunk", "cannot be read as csv"),
    ],
)
def test_files_that_are_no_table_are_refused(tmp_path, content, message):
    """The message names the file and the reason."""
    path = tmp_path / ("a.csv.gz" if content[:1] == b"\x1f" else "a.csv")
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        read(path)
    assert str(path) in str(error.value)


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    """Cut off, altered in the middle, or not there at all."""
    path = write(long_file.frame(), tmp_path)
    whole = path.read_bytes()
    for damaged in (whole[:-100], whole[:400], whole[:4] + bytes(200) + whole[204:]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="cannot be read as parquet"):
            read(path)
    path.unlink()
    with pytest.raises(UserError, match=r"cannot be read as parquet: .*No such file"):
        read(path)


@pytest.mark.parametrize(
    ("column", "values"),
    [("who", 1.5), ("steps", pd.Timestamp("2024-01-01")), ("hour", [[1]])],
)
def test_columns_of_no_use_are_named(tmp_path, column, values):
    """An id of fractions, a value that is a date, a time that is a list."""
    table = long_file.frame().assign(**{column: pd.Series([values] * len(TABLE))})
    with pytest.raises(UserError, match=f"column '{column}'"):
        read(write(table, tmp_path))


def test_no_client_left_is_an_error(tmp_path: Path) -> None:
    """The message counts why each was left out."""
    path = write(long_file.frame(), tmp_path)
    with pytest.raises(UserError, match=r"no client is left.*40 clients were left out"):
        read(path, parameters(gaps={"most": 0.001}))


def test_another_ending_is_refused(tmp_path: Path) -> None:
    """The ending says what a file is."""
    with pytest.raises(UserError, match=r"must end in \.csv, \.csv\.gz, \.parquet"):
        read(tmp_path / "curves.xlsx")


def test_the_file_is_never_all_in_memory(tmp_path, monkeypatch):
    """Eight times the rows need no more memory, but for the ids."""
    monkeypatch.setattr(curves.LongReader.blocks, "__defaults__", (2000,))
    monkeypatch.setattr(table_file, "_ROWS", 1000)
    peaks = []
    for copies in (1, 8):
        hours = np.tile(np.arange(25), 1000 * copies)
        who = np.repeat(np.arange(1000 * copies), 25)
        group = np.where(who % 2, "ill", "well")
        table = pd.DataFrame({"who": who, "hour": hours, "steps": 1.0, "group": group})
        path = tmp_path / f"{copies}.parquet"
        table.to_parquet(path, index=False)
        tracemalloc.start()
        count = sum(len(p["curve"]) for p in curves.pieces(PARAMETERS, {"path": path}))
        peaks.append(tracemalloc.get_traced_memory()[1] - 60 * count)
        tracemalloc.stop()
        assert count == 1000 * copies
    assert peaks[1] < 1.3 * peaks[0]
