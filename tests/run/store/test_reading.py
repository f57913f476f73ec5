"""What is read of a table: some columns, some rows, each part of the file once."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from curvote.pipeline.config.project import Project
from curvote.pipeline.store import parquet, tables
from curvote.pipeline.store.artifacts import Artifact
from tests import earlier

ENCODED = ("client_id", "label", "group", "coefficients", "z", "clipped", "part")


@pytest.fixture
def encoded(finished: Project, tmp_path: Path) -> Artifact:
    """Return a copy of an artifact of five repetitions, each of 180 clients."""
    (found,) = finished.clients.glob("project/*")
    return Artifact(Path(shutil.copytree(found, tmp_path / "project" / found.name)))


def test_only_the_columns_asked_for(
    encoded: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They alone are decoded, each once for all repetitions of a row group."""
    parquet.clear_cache()
    read: list[list[str]] = []
    real = pq.ParquetFile.read_row_group

    def counted(self: pq.ParquetFile, i: int, columns: list[str], **more: bool) -> None:
        read.append(columns)
        return real(self, i, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    for replicate in range(5):
        place = (replicate,)
        assert set(encoded.columns("encoded", place, ["label"])) == {"label"}
    assert read == [["label"]]
    assert set(encoded.columns("encoded", (0,))) == set(ENCODED)
    assert read[1:] == [[name for name in ENCODED if name != "label"]]


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Compare all columns, with their kinds."""
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        np.testing.assert_array_equal(found[name], values)


def test_a_file_of_an_earlier_version_reads_the_same(encoded: Artifact) -> None:
    """A row group for each repetition, and no word of rows in the manifest."""
    before = [encoded.columns("encoded", (r,)) for r in range(5)]
    earlier.age(encoded.path)
    for replicate, expected in enumerate(before):
        same(Artifact(encoded.path).columns("encoded", (replicate,)), expected)


@pytest.mark.parametrize("aged", [False, True])
def test_shards_are_the_rows_in_order(
    encoded: Artifact, monkeypatch: pytest.MonkeyPatch, aged: bool
) -> None:
    """Of an earlier version, too: its row groups may be larger, and are streamed."""
    if aged:
        earlier.age(encoded.path)
    for module in (tables, tables):
        monkeypatch.setattr(module, "SHARD", 50)
    there = Artifact(encoded.path)
    whole = there.columns("encoded", (3,))
    rows = len(whole["label"])
    assert there.count("encoded", (3,)) == -(-rows // 50)
    parts = list(there.shards("encoded", (3,), ["z", "label"]))
    sizes = [len(part["label"]) for part in parts]
    assert sizes == [50] * (rows // 50) + [rows % 50] * (rows % 50 > 0)
    joined = {name: np.concatenate([p[name] for p in parts]) for name in ("z", "label")}
    same(joined, {name: whole[name] for name in ("z", "label")})
    same(there.shard("encoded", (3,), 1, ["z", "label"]), parts[1])


def test_an_artifact_that_was_altered_is_read_anew(encoded: Artifact) -> None:
    """What was kept belongs to the file as it stood."""
    parquet.clear_cache()
    before = encoded.columns("encoded", (0,), ["label"])["label"]
    path = encoded.path / "encoded.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("label")
    other = (table["label"].to_numpy() == 0).astype(np.int64)
    pq.write_table(table.set_column(at, table.field(at), [other]), path)
    after = Artifact(encoded.path).columns("encoded", (0,), ["label"])["label"]
    assert not np.array_equal(before, after)
    parquet.clear_cache()
