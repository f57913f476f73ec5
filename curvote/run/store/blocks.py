"""Blocks of replicates: computed in any order, in any process, each written once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from curvote.durable import new_file
from curvote.errors import InternalError
from curvote.protocols.stage import Columns, Tables
from curvote.run.plan.step import SHARED
from curvote.run.store.artifacts import Artifact
from curvote.run.store.contracts import to_arrow

PREFIX: Final = "block-"
# Doubles do not repeat, so dictionaries would cost time and save nothing.
FORMAT: Final[dict[str, Any]] = {"use_dictionary": False, "compression": "zstd"}
Part = tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """All a process needs to compute blocks of one step; holds paths, no tables."""

    module: str
    tables: tuple[str, ...]
    inputs: dict[str, str]
    params: dict[str, Any]
    facts: dict[str, Any]
    folder: str


def path(folder: Path, part: Part, table: str) -> Path:
    """Return the file of one table of one block."""
    return folder / f"{PREFIX}{part[0]}-{part[-1]}.{table}.parquet"


def run_all(
    job: Job,
    parts: Sequence[Part],
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Compute every block that is not there yet, ``workers`` at a time."""
    folder = Path(job.folder)
    waiting = [
        p for p in parts if not all(path(folder, p, t).is_file() for t in job.tables)
    ]
    done = len(parts) - len(waiting)
    tell = progress or (lambda _done, _all: None)
    tell(done, len(parts))
    for _ in _results(job, waiting, min(workers, len(waiting))):
        done += 1
        tell(done, len(parts))


def _results(job: Job, parts: Sequence[Part], workers: int) -> Any:
    if workers <= 1:
        return map(partial(compute, job), parts)
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=workers, return_as="generator_unordered")
    return pool(delayed(_in_worker)(job, part, os.getpid()) for part in parts)


def _in_worker(job: Job, part: Part, parent: int) -> None:
    _end_with(parent)
    compute(job, part)


def compute(job: Job, part: Part) -> None:
    """Compute one block and write its tables, each whole or not at all."""
    inputs = {name: Artifact(Path(place)) for name, place in job.inputs.items()}
    stage = import_module(job.module)
    with threadpool_limits(limits=1):  # reductions must not depend on thread counts
        if part == SHARED and hasattr(stage, "pieces"):
            made = stage.pieces(inputs, job.params, job.facts)
        else:
            made = _by_replicate(stage.block(part, inputs, job.params, job.facts))
        _write(job, part, made)


def _by_replicate(tables: Tables) -> Iterator[dict[str, Columns]]:
    """Yield the tables of one replicate after the other."""
    for pieces in zip(*tables.values(), strict=True):
        yield dict(zip(tables, pieces, strict=True))


def _write(job: Job, part: Part, made: Iterator[dict[str, Columns]]) -> None:
    """Write a row group for each piece; files appear whole or not at all."""
    folder = Path(job.folder)
    files = {name: path(folder, part, name) for name in job.tables}
    with ExitStack() as stack:
        writers: dict[Path, pq.ParquetWriter] = {}
        for number, tables in enumerate(made):
            replicate = part[number] if part != SHARED else SHARED[0]
            for name, columns in tables.items():
                _append(stack, writers, files[name], to_arrow(name, replicate, columns))
    if {_temporary(file) for file in files.values()} != set(writers):
        raise InternalError(f"{job.module} made {sorted(writers)}, not {job.tables}")
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


_watched: set[int] = set()


def _end_with(parent: int) -> None:
    """End this worker process when its parent is gone, even by kill -9."""
    if parent in _watched:
        return
    _watched.add(parent)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
