"""A project as the version before left it: its records, manifests and tables."""

import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curvote.chain.registry import SYSTEMS
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import pipeline_model
from curvote.pipeline.plan.step import file_digest
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import MANIFEST, all_folders
from curvote.pipeline.store.records import RunRecord

CELL = ("protocol", "epsilon", "learner", "setting", "arrival")
SERVERS = 3


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a folder; Python before 3.11.4 knows no filter."""
    options: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as tar:
        tar.extractall(folder, **options)


def aged(project: Project) -> Project:
    """Bring all that a project holds into its earlier form, but for scores.

    Those were wide, and are refused (`test_bad_input`).
    """
    for folder in all_folders(project):
        age(folder)
    for record in records.load_records(project):
        records.save_record(project, _record(record))
    return project


def age(folder: Path) -> None:
    """Bring the tables of one artifact into the form of version 2."""
    tables = json.loads((folder / MANIFEST).read_text())["tables"]
    for name, entry in tables.items():
        _write(folder, name, list(_tables(folder / f"{name}.parquet", entry)))


def _record(record: RunRecord) -> RunRecord:
    """Cells named every coordinate, the setting late; a dump held all sections."""
    steps = [s | {"cell": {n: s["cell"].get(n) for n in CELL}} for s in record.steps]
    whole = pipeline_model(frozenset(SYSTEMS)).model_validate(
        {"epsilon": [4.0]} | record.config
    )
    return replace(record, steps=steps, config=whole.model_dump(mode="json"))


def _write(folder: Path, name: str, parts: list[pa.Table]) -> None:
    """Write a table, a row group each; the manifest counted replicates, -1 shared."""
    path = folder / f"{name}.parquet"
    with pq.ParquetWriter(path, parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part, row_group_size=max(1, part.num_rows))
    manifest = json.loads((folder / MANIFEST).read_text())
    entry = manifest["tables"][name]
    entry["replicates"] = [_number(*place) for place in entry.pop("places")]
    del entry["groups"], entry["counts"]
    entry |= {"sha256": file_digest(path), "bytes": path.stat().st_size}
    (folder / MANIFEST).write_text(json.dumps(manifest))


def _number(replicate: int = -1, server: int | None = None) -> int:
    return replicate if server is None else replicate * SERVERS + server


def _tables(path: Path, entry: dict[str, Any]) -> Iterator[pa.Table]:
    """Yield the rows of each repetition without what their fields say."""
    table, at = pq.read_table(path), 0
    bare = pa.schema([field.remove_metadata() for field in table.schema])
    for rows in entry["counts"]:
        yield table.slice(at, rows).cast(bare)
        at += rows
