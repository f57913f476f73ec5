"""Shards whose rows go to buckets: drawn by workers, put together bucket by bucket.

A worker writes the rows of a shard as a file of its own, one batch a bucket; then each
bucket is read from all files and arranged in memory. So memory is bounded by a shard
and a bucket, however many clients there are. What lies here is in the clients' order
and says who is asked what: it stays on the clients' side and is deleted at the end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from curvote.chain.stage import Here, Place, Scattered
from curvote.chain.tables import Table
from curvote.durable import new_file, owner_folder
from curvote.errors import InternalError
from curvote.run.engines import Engine
from curvote.run.places import at
from curvote.run.project import Project
from curvote.run.store import blocks
from curvote.run.store.arrow import to_arrow, to_columns
from curvote.run.store.artifacts import Artifact
from curvote.run.store.merging import Batch
from curvote.run.store.reading import forget
from curvote.run.workers import one_thread

Tell = Callable[[int, int], None]
# How many files of shards are open at once; more are opened again for each bucket.
_OPEN: Final = 256


@contextmanager
def scratch(project: Project, step: tuple[str, str]) -> Iterator[Path]:
    """Give an empty folder on the clients' side, for its owner only, and delete it.

    What a killed run left there is deleted first: a release is never resumed.
    """
    stage, key = step
    folder = owner_folder(project.clients) / stage / f".shards-{key}"
    owner_folder(folder.parent)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield owner_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # not empty: other releases of the stage
            folder.parent.rmdir()


def scatters(job: blocks.Job) -> bool:
    """Say whether the stage of a job is computed shard by shard, over buckets."""
    stage = import_module(job.module)
    return hasattr(stage, "shard") and hasattr(stage, "joined")


def batches(
    job: blocks.Job, places: Sequence[Place], engine: Engine, tell: Tell | None
) -> Iterator[Batch]:
    """Draw all shards, then yield the table bucket by bucket."""
    counts = {place: _prepared(job, place) for place in places}
    every = [(place, n) for place, count in counts.items() for n in range(count)]
    say = tell or (lambda _done, _all: None)
    say(0, len(every))
    for done, _ in enumerate(engine.run(partial(draw, job), every), start=1):
        say(done, len(every))
    for place in places:
        yield from _joined(job, place, counts[place])


def _prepared(job: blocks.Job, place: Place) -> int:
    """Write what the shards of a repetition share; return how many there are."""
    here, stage = _here(job, place), import_module(job.module)
    if hasattr(stage, "shared"):
        for name, values in stage.shared(here).items():
            np.save(_shared(job, place, name), values, allow_pickle=False)
    count: int = stage.shards(here.inputs, here.params, here.facts, place)
    return count


def draw(job: blocks.Job, unit: tuple[Place, int]) -> None:
    """Compute one shard and write its file, whole or not at all.

    Where an engine has it drawn twice at once, the file that is there first stays.
    """
    place, number = unit
    with one_thread():
        made = import_module(job.module).shard(_here(job, place), number)
    forget()  # nobody reads this shard again
    if not isinstance(made, Scattered):
        raise InternalError(f"{job.module}: shard {number} goes to no buckets")
    batch, sizes = _sorted(job, place, made)
    file = _file(job, place, number)
    aside = new_file(file.with_name(f".{file.name}.{uuid4().hex}"))
    with pa.OSFile(str(aside), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as to:
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            to.write_batch(batch.slice(end - size, size))
    with suppress(FileExistsError):
        os.link(aside, file)
    aside.unlink()


def _sorted(
    job: blocks.Job, place: Place, made: Scattered
) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
    """Return the rows of a shard, those of a bucket together, and how many each has."""
    table = _table(job)
    order = np.argsort(made.buckets, kind="stable")
    rows = {name: own[order] for name, own in made.rows[table.name].items()}
    sizes = np.bincount(made.buckets, minlength=made.count)
    return to_arrow(table, job.index, place, rows), sizes


def _joined(job: blocks.Job, place: Place, count: int) -> Iterator[Batch]:
    """Yield the rows of each bucket, as the stage arranges them."""
    stage, here, table = import_module(job.module), _here(job, place), _table(job)
    with ExitStack() as stack:
        files = _Files(stack, [_file(job, place, number) for number in range(count)])
        for bucket in range(files.buckets):
            arrived = to_columns(table.name, files.read(bucket))
            rows = stage.joined(here, bucket, {table.name: arrived})[table.name]
            yield place, to_arrow(table, job.index, place, rows)


class _Files:
    """The files of a repetition's shards, of which so many stay open."""

    def __init__(self, stack: ExitStack, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._open = {p: stack.enter_context(_reader(p)) for p in paths[:_OPEN]}

    @property
    def buckets(self) -> int:
        """Over how many buckets each shard went."""
        return int(self._open[self._paths[0]].num_record_batches)

    def read(self, bucket: int) -> pa.Table:
        """Return the rows that went to a bucket, in the order of the shards."""
        found = [self._batch(path, bucket) for path in self._paths]
        return pa.Table.from_batches(found).unify_dictionaries().combine_chunks()

    def _batch(self, path: Path, bucket: int) -> pa.RecordBatch:
        if path in self._open:
            return self._open[path].get_batch(bucket)
        with _reader(path) as reader:
            return reader.get_batch(bucket)


@contextmanager
def _reader(path: Path) -> Iterator[Any]:
    """Open a file to read single batches of it: a mapped one would stay in memory."""
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
        yield reader


def _table(job: blocks.Job) -> Table:
    if len(job.tables) != 1:
        raise InternalError(f"{job.module} scatters the rows of more than one table")
    return job.tables[0]


def _here(job: blocks.Job, place: Place) -> Here:
    """Return a repetition, with what its shards share if that was written."""
    inputs = {name: Artifact(at(path)) for name, path in job.inputs.items()}
    shared = {
        path.name.split(".")[1]: np.load(path, mmap_mode="r")
        for path in sorted(Path(job.scratch).glob(f"{_name(place)}.*.npy"))
    }
    own = job.stage, place, job.sizes, inputs, job.params, job.facts
    return Here(*own, words=job.words, shared=shared)


def _name(place: Place) -> str:
    return "shared-" + "_".join(map(str, place))


def _shared(job: blocks.Job, place: Place, name: str) -> Path:
    return new_file(Path(job.scratch) / f"{_name(place)}.{name}.npy")


def _file(job: blocks.Job, place: Place, number: int) -> Path:
    return Path(job.scratch) / f"shard-{'_'.join(map(str, place))}-{number}.arrow"
