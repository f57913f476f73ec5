"""Blocks of repetitions: computed in any order, in any process, each written once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curvote.chain.stage import SHARED, Here, Place, Rows
from curvote.chain.tables import Table
from curvote.durable import new_file
from curvote.errors import InternalError
from curvote.run.engines import Engine
from curvote.run.store.arrow import to_arrow
from curvote.run.store.artifacts import Artifact
from curvote.run.workers import one_thread

PREFIX: Final = "block-"
# Doubles do not repeat, so dictionaries would cost time and save nothing.
FORMAT: Final[dict[str, Any]] = {"use_dictionary": False, "compression": "zstd"}
Part = tuple[Place, ...]


@dataclass(frozen=True)
class Job:
    """All a process needs to compute blocks of one step; holds paths, no tables."""

    stage: str
    module: str
    tables: tuple[Table, ...]
    index: tuple[str, ...]
    sizes: Place
    inputs: dict[str, str]
    params: dict[str, Any]
    facts: dict[str, Any]
    folder: str


def path(folder: Path, part: Part, table: str) -> Path:
    """Return the file of one table of one block."""
    first, last = ("_".join(map(str, place)) for place in (part[0], part[-1]))
    return folder / f"{PREFIX}{first}-{last}.{table}.parquet"


def run_all(
    job: Job,
    parts: Sequence[Part],
    engine: Engine,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Compute every block that is not there yet, as ``engine`` does it."""
    folder = Path(job.folder)
    names = [table.name for table in job.tables]
    waiting = [
        p for p in parts if not all(path(folder, p, name).is_file() for name in names)
    ]
    done = len(parts) - len(waiting)
    tell = progress or (lambda _done, _all: None)
    tell(done, len(parts))
    for _ in engine.run(partial(compute, job), waiting):
        done += 1
        tell(done, len(parts))


def compute(job: Job, part: Part) -> None:
    """Compute one block and write its tables, each whole or not at all."""
    inputs = {name: Artifact(Path(place)) for name, place in job.inputs.items()}
    stage = import_module(job.module)
    with one_thread():
        if part == (SHARED,) and hasattr(stage, "pieces"):
            made = stage.pieces(inputs, job.params, job.facts)
        else:
            heres = [
                Here(job.stage, place, job.sizes, inputs, job.params, job.facts)
                for place in part
            ]
            # All at once where the stage can.
            one = hasattr(stage, "one")
            made = map(stage.one, heres) if one else iter(stage.block(heres))
        _write(job, part, made)


def _write(job: Job, part: Part, made: Iterator[Rows]) -> None:
    """Write a row group for each piece; files appear whole or not at all."""
    folder = Path(job.folder)
    files = {t.name: path(folder, part, t.name) for t in job.tables}
    kinds = {t.name: t for t in job.tables}
    with ExitStack() as stack:
        writers: dict[Path, pq.ParquetWriter] = {}
        for number, tables in enumerate(made):
            place = part[number] if part != (SHARED,) else SHARED
            for name, columns in tables.items():
                table = to_arrow(kinds[name], job.index, place, columns)
                _append(stack, writers, files[name], table)
    if {_temporary(file) for file in files.values()} != set(writers):
        raise InternalError(f"{job.module} made {sorted(writers)}, not {sorted(files)}")
    for file in files.values():
        _temporary(file).replace(file)


def _append(
    stack: ExitStack, writers: dict[Path, pq.ParquetWriter], file: Path, table: pa.Table
) -> None:
    place = _temporary(file)
    if place not in writers:
        writer = pq.ParquetWriter(new_file(place), table.schema, **FORMAT)
        writers[place] = stack.enter_context(writer)
    if writers[place].schema != table.schema:
        raise InternalError("the pieces of one block differ in their columns")
    writers[place].write_table(table, row_group_size=max(1, table.num_rows))


def _temporary(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}")
