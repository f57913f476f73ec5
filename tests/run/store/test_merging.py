"""One file a table: its bytes follow from the rows alone, its groups are shards."""

import errno
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curvote.base.errors import InternalError
from curvote.chain.stage import SHARED, TEXT, VECTOR, Place, Table
from curvote.pipeline.store import parquet, tables
from curvote.pipeline.store.arrow import to_arrow
from curvote.pipeline.store.parquet import Batch, merge_blocks

SHARD = 8
TABLE = Table("t", {"name": TEXT, "x": VECTOR, "colour": ("red", "blue")}, shared=True)


@pytest.fixture(autouse=True, scope="module")
def _small() -> Any:
    """Let a shard have 8 rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "SHARD", SHARD)
        yield


def batch(place: Place, first: int, rows: int) -> pa.RecordBatch:
    """Return some rows of a repetition, by their numbers."""
    numbers = np.arange(first, first + rows)
    columns = {
        "name": np.array([f"name {n % 3}" for n in numbers], dtype=object),
        "x": np.column_stack([numbers, -numbers]) / 2,
        "colour": (numbers % 2).astype(np.int8),
    }
    return to_arrow(TABLE, ("replicate",), place, columns)


def cut(sizes: Sequence[int], parts: Sequence[int]) -> list[Batch]:
    """Return repetitions of these sizes, each in so many batches."""
    found: list[Batch] = []
    for number, (rows, count) in enumerate(zip(sizes, parts, strict=True)):
        ends = np.linspace(0, rows, count + 1).astype(int)
        for start, end in pairwise(ends):
            found.append(((number,), batch((number,), start, end - start)))
    return found


SIZES = st.lists(st.integers(0, 30), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sizes=SIZES, parts=st.lists(st.integers(1, 5), min_size=6, max_size=6))
def test_bytes_do_not_depend_on_how_rows_came(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], parts: list[int]
) -> None:
    """The same file from one batch for each repetition and from several."""
    folder = tmp_path_factory.mktemp("merged")
    one, other = folder / "one.parquet", folder / "other.parquet"
    entry = merge_blocks(one, cut(sizes, [1] * len(sizes)))
    assert merge_blocks(other, cut(sizes, parts[: len(sizes)])) == entry
    assert one.read_bytes() == other.read_bytes()
    assert pq.read_table(one)["x"].to_pylist() == [
        [n / 2, -n / 2] for rows in sizes for n in range(rows)
    ]


@given(sizes=SIZES)
@settings(max_examples=60, deadline=None)
def test_a_row_group_holds_whole_repetitions_or_a_shard_of_one(
    sizes: list[int],
) -> None:
    """Never more than a shard; what fits beside others stands beside them."""
    found = list(parquet.group_batches(cut(sizes, [1] * len(sizes))))
    every = [sum(len(part) for _, part in group) for group in found]
    assert sum(every) == sum(sizes)
    assert max(every) <= SHARD
    for group in found:
        places = {place for place, _ in group}
        assert len(places) == 1 or all(sizes[place[0]] <= SHARD for place in places)
        mine = [sum(len(p) for at, p in group if at == place) for place in places]
        if len(places) > 1:
            assert sorted(mine) == sorted(sizes[place[0]] for place in places)
    for before, after in pairwise(found):
        (last,), (first,) = before[0][0], after[0][0]
        rows = sum(len(part) for _, part in before)
        assert rows + sizes[first] > SHARD or sizes[last] > SHARD


def test_the_entry_says_where_each_repetition_stands(tmp_path: Path) -> None:
    """Place, row group and rows, in the order of the file."""
    entry = merge_blocks(tmp_path / "t.parquet", cut([3, 4, 20, 2], [1] * 4))
    told = zip(entry["places"], entry["groups"], entry["counts"], strict=True)
    assert list(told) == [
        ((0,), 0, 3),
        ((1,), 0, 4),
        ((2,), 1, 8),
        ((2,), 2, 8),
        ((2,), 3, 4),
        ((3,), 4, 2),
    ]
    assert entry["rows"] == 29


def test_doubles_stand_as_they_are(tmp_path: Path) -> None:
    """No compression, and no dictionary but for what repeats."""
    path = tmp_path / "t.parquet"
    merge_blocks(path, cut([5], [1]))
    told = pq.ParquetFile(path).metadata.row_group(0)
    columns = [told.column(i) for i in range(told.num_columns)]
    assert {column.compression for column in columns} == {"UNCOMPRESSED"}
    listed = [
        column.path_in_schema.split(".")[0]
        for column in columns
        if column.has_dictionary_page
    ]
    assert listed == ["replicate", "name", "colour"]


def test_blocks_of_other_columns_are_our_bug(tmp_path: Path) -> None:
    """A vector of another length in the second repetition."""
    wide = batch((1,), 0, 2).to_pydict() | {"x": np.ones((2, 3))}
    columns = {name: np.array(wide[name]) for name in ("name", "x")}
    columns["colour"] = np.zeros(2, np.int8)
    other = to_arrow(TABLE, ("replicate",), (1,), columns)
    with pytest.raises(InternalError, match="columns"):
        merge_blocks(tmp_path / "t.parquet", [((0,), batch((0,), 0, 2)), ((1,), other)])


@pytest.mark.parametrize("place", [SHARED, (0,)])
def test_a_full_disk_stops_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """The error is the disk's own, and the writer that was stopped says no more."""
    real, written = os.write, []

    def full(handle: int, data: bytes) -> int:
        written.append(data)
        if len(written) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        merge_blocks(tmp_path / "t.parquet", [(place, batch(place, 0, 5))])
    count = len(written)
    assert count == 3
