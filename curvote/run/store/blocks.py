"""Blocks of repetitions: computed in any order, in any process, each written once."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from threadpoolctl import ThreadpoolController

from curvote.chain.stage import SHARED, Here, Place, Rows
from curvote.chain.tables import Table
from curvote.durable import new_file
from curvote.errors import InternalError
from curvote.run.store.arrow import to_arrow
from curvote.run.store.artifacts import Artifact
from curvote.run.store.merging import Batch

PREFIX: Final = "block-"
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
    return folder / f"{PREFIX}{first}-{last}.{table}.arrow"


def run_all(
    job: Job,
    parts: Sequence[Part],
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Compute every block that is not there yet, ``workers`` at a time."""
    folder = Path(job.folder)
    names = [table.name for table in job.tables]
    waiting = [
        p for p in parts if not all(path(folder, p, name).is_file() for name in names)
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
    with _threads(len(sys.modules)).limit(limits=1):
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


@lru_cache(maxsize=1)
def _threads(_modules: int) -> ThreadpoolController:
    """Return what limits threads: reductions must not depend on how many there are.

    Finding the libraries takes longer than a small block; imports may bring new ones.
    """
    return ThreadpoolController()


def _write(job: Job, part: Part, made: Iterator[Rows]) -> None:
    """Write a batch for each piece; files appear whole or not at all."""
    folder = Path(job.folder)
    files = {t.name: path(folder, part, t.name) for t in job.tables}
    kinds = {t.name: t for t in job.tables}
    with ExitStack() as stack:
        writers: dict[Path, Any] = {}
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
    stack: ExitStack, writers: dict[Path, Any], file: Path, batch: pa.RecordBatch
) -> None:
    place = _temporary(file)
    if place not in writers:
        sink = stack.enter_context(pa.OSFile(str(new_file(place)), "wb"))
        writers[place] = stack.enter_context(pa.ipc.new_stream(sink, batch.schema))
    try:
        writers[place].write_batch(batch)
    except pa.ArrowInvalid as error:
        raise InternalError(
            f"the pieces of one block differ in their columns: {error}"
        ) from error


def batches(folder: Path, parts: Sequence[Part], table: str) -> Iterator[Batch]:
    """Yield what finished blocks hold of a table, in order, one file at a time."""
    for part in parts:
        with pa.memory_map(str(path(folder, part, table))) as source:
            for number, batch in enumerate(pa.ipc.open_stream(source)):
                yield (part[number] if part != (SHARED,) else SHARED), batch


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
