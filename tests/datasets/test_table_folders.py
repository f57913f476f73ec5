"""A folder of Parquet files, a Delta table and an object store are read as one file is.

One test starts the server of an object store: Arrow talks to it by HTTP alone.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import fs

from curvote.base import table_file
from curvote.base.errors import UserError
from curvote.base.object_store import ObjectStoreError, as_path
from curvote.data import raw_files
from curvote.data.tables import table
from tests import object_store, plain, private_table
from tests.datasets.test_own_data import STUDY

TABLE = private_table.TABLE | {
    "features": ["age", "year", "town"],
    "bounds": {"age": [0, 100], "year": [2000, 2030]},
    "categories": {"town": ["bath", "york mills"]},
}
PARAMETERS = table.Parameters.model_validate(TABLE)
COLUMNS = ["person", "outcome", "age", "year", "town"]


def people(begin: int = 0, end: int = 40) -> pa.Table:
    """Return people of three years and two towns, one of whom has no age."""
    numbers = np.arange(begin, end)
    ages = [None, *(numbers[1:] * 7 % 90).astype(float)]
    towns = [["bath", "york mills"][i % 2] for i in numbers]
    names, ills = [f"p{i}" for i in numbers], [["ill", "well"][i % 2] for i in numbers]
    return pa.table([names, ills, ages, 2020 + numbers % 3, towns], names=COLUMNS)


def partitioned(folder: Path) -> pa.Table:
    """Write a folder with partitions, and what is no data beside; return its rows."""
    pq.write_to_dataset(people(), folder, partition_cols=["year", "town"])
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").touch()
    return people().sort_by([("year", "ascending"), ("town", "ascending")])


def delta(folder: Path) -> pa.Table:
    """Write a Delta table of four versions; return the rows of the last in order."""
    write_deltalake(folder, people(0, 20).drop(["age"]), partition_by=["town"])
    write_deltalake(folder, people(20, 40), mode="append", schema_mode="merge")
    DeltaTable(folder).delete("person = 'p3'")
    DeltaTable(folder).delete("person = 'p24'")
    rows: list[Any] = []
    for path in sorted(DeltaTable(folder).file_uris()):
        town = "bath" if "=bath" in path else "york mills"
        read = pq.ParquetFile(path).read().to_pylist()
        rows += [{"age": None, "town": town} | row for row in read]
    return pa.Table.from_pylist(rows).select(COLUMNS)


WRITERS = {"partitioned": partitioned, "delta": delta}


def what_is_read(path: Path) -> dict[str, Any]:
    """Return what a stage takes of a table, and what its owner is told of it."""
    paths = {"path": path}
    table._cached_survey.cache_clear()
    found = {x: y.tolist() for x, y in table.clients(PARAMETERS, paths).items()}
    members = [part["client_id"] for part in table.members(PARAMETERS, paths)]
    assert np.concatenate(members).tolist() == found["client_id"]
    told = found | table.facts(PARAMETERS, paths)
    told |= table.examined(PARAMETERS, paths).to_json()
    return told | {"title": "", "path": ""}


@pytest.mark.parametrize("form", WRITERS)
def test_a_folder_is_the_file_of_its_rows(tmp_path, monkeypatch, form):
    """In the order of its files' names, however small the blocks are."""
    pq.write_table(WRITERS[form](tmp_path / form), tmp_path / "people.parquet")
    whole = what_is_read(tmp_path / "people.parquet")
    assert len(whole["label"]) == (38 if form == "delta" else 40)
    assert what_is_read(tmp_path / form) == whole
    monkeypatch.setattr(table_file, "_ROWS", 3)
    assert what_is_read(tmp_path / form) == whole


def test_the_digest_follows_names_contents_and_version(tmp_path):
    """But neither dates nor files that a Delta table has no more."""
    for form, writer in WRITERS.items():
        writer(folder := tmp_path / form)
        before, part = raw_files.digest(folder), min(folder.rglob("*.parquet"))
        part.touch()
        assert raw_files.digest(folder) == before
        if form == "delta":
            shutil.copy(part, part.with_name("left-over.parquet"))
            assert raw_files.digest(folder) == before
            DeltaTable(folder).delete("person = 'p5'")
        else:
            part.rename(part.with_name("other.parquet"))
        assert raw_files.digest(folder) != before


def part(folder: Path, name: str, **changed: Any) -> None:
    """Write two people into a file of a folder."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    columns = people(0, 2).drop(["town"]).to_pydict() | {"town": ["bath"] * 2} | changed
    pq.write_table(pa.table({x: y for x, y in columns.items() if y}), folder / name)


def test_what_is_wrong_with_files_is_told_at_once(tmp_path):
    """With their names on the terminal alone."""

    def problems(*words: str) -> None:
        table._cached_survey.cache_clear()
        with pytest.raises(UserError) as error:
            table.facts(PARAMETERS, {"path": tmp_path})
        assert [word for word in words if word not in str(error.value)] == []
        kept = str(error.value.for_records())
        assert not any(name in kept for name in ("year=b", "notes", "old/"))

    problems("holds no Parquet file")
    (tmp_path / "notes.txt").touch()
    part(tmp_path, "old/a.parquet")
    problems("notes.txt is not Parquet, old is no partition like year=2026")
    shutil.rmtree(tmp_path)
    part(tmp_path, "year=a/1.parquet", year=None)
    part(tmp_path, "year=b/2.parquet", year=None, age=["x", "y"], outcome=None)
    part(tmp_path, "year=c/3.parquet", age=pa.nulls(2))
    problems(
        "'age' is a number in some files, but not in all (1): text in year=b/2.parquet",
        "'outcome' is text in some files, but not in all (1): missing in year=b/",
        "'year' is text in some files, but not in all (1): there twice in year=c/",
    )
    shutil.rmtree(tmp_path / "year=c")
    part(tmp_path, "year=b/2.parquet", year=None, person=["s", "t"])
    problems("year is not a finite number (4): row 1 'a'")
    (tmp_path / "year=b/2.parquet").write_text("no")
    problems("year=b/2.parquet Parquet file size is 2 bytes")


ACTIONS = {
    "with deletionVectors, which": ("protocol", ["deletionVectors"]),
    "[Tt]ypeWidening": ("protocol", ["typeWidening"]),
    "with columnMapping, which": ("metaData", {"delta.columnMapping.mode": "name"}),
    "a shallow clone": ("add", "file:///elsewhere/a.parquet"),
}


@pytest.mark.parametrize("words", ACTIONS)
def test_what_would_be_read_wrongly_is_refused(tmp_path, words):
    """Rows that are deleted elsewhere, or columns that are called otherwise."""
    write_deltalake(tmp_path, people())
    log, (action, change) = tmp_path / f"_delta_log/{0:020}.json", ACTIONS[words]
    features = {"minReaderVersion": 3, "minWriterVersion": 7}
    features |= {"readerFeatures": change, "writerFeatures": change}
    changes = {"metaData": {"configuration": change}, "add": {"path": change}}
    entries = [json.loads(text) for text in log.read_text().splitlines()]
    for entry in (x[action] for x in entries if action in x):
        entry.update(changes.get(action, features))
    log.write_text("\n".join(map(json.dumps, entries)))
    with pytest.raises(UserError, match=words):
        raw_files.digest(tmp_path)


def test_an_object_store_is_read_as_this_machine_is(tmp_path, monkeypatch):
    """Each form: what is read, and digests. All runs store the same, and no name."""
    away = f"s3://{object_store.BUCKET}"
    pq.write_table(delta(tmp_path / "delta"), tmp_path / "delta.parquet")
    partitioned(tmp_path / "partitioned")
    for ending in ("csv", "csv.gz"):
        people().to_pandas().to_csv(tmp_path / f"people.{ending}", index=False)
    few = STUDY | {"clients": {"train": 10, "vote": 10, "test": 10}, "replicates": 1}
    few |= {"train": {"count": 2, "size": 5}}
    paths = {"file": "delta.parquet", "folder": "delta", "away": f"{away}/delta"}
    studies = {x: few | {"source": TABLE | {"path": y}} for x, y in paths.items()}
    with object_store.started() as address:
        object_store.point_at(monkeypatch, address)
        store, stored = object_store.bucket(address), []
        for path in sorted(tmp_path.iterdir()):
            place = as_path(f"{away}/{path.name}")
            fs.copy_files(str(path), place.bucket_key, fs.LocalFileSystem(), store)
            assert what_is_read(place) == what_is_read(path)
            assert raw_files.digest(place) == raw_files.digest(path)
        for name in studies:
            plain.run(plain.write(tmp_path, **studies), name)
            made = [json.loads(x.read_text()) for x in tmp_path.rglob("manifest.json")]
            stored.append({x["sha256"] for m in made for x in m["tables"].values()})
    assert len([*tmp_path.glob("data/clients/ingest/*")]) == 3
    assert stored[0] == stored[1] == stored[2]
    kept = [x.read_bytes() for x in (tmp_path / "data").rglob("*") if x.is_file()]
    assert not [x for x in kept if b"town=" in x or b"part-0" in x]
    with object_store.answering(403) as address:
        object_store.point_at(monkeypatch, address)
        with pytest.raises(ObjectStoreError, match="there is no right to read it"):
            raw_files.digest(as_path(paths["away"]))
