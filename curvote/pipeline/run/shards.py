"""Shards whose rows go to buckets: drawn by workers, merged bucket by bucket.

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
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from curvote.base.durable import create_empty_file, private_folder
from curvote.base.errors import InternalError
from curvote.chain.stage import Place, Scattered, StageContext, Table, stage_functions
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import blocks
from curvote.pipeline.run.engines import Engine
from curvote.pipeline.run.workers import one_thread
from curvote.pipeline.store.arrow import to_arrow, to_columns
from curvote.pipeline.store.artifacts import Artifact
from curvote.pipeline.store.locations import as_path
from curvote.pipeline.store.table_files import Batch
from curvote.pipeline.store.tables import clear_cache

Tell = Callable[[int, int], None]
# How many files of shards are open at once; more are opened again for each bucket.
_OPEN: Final = 256


@contextmanager
def scratch_folder(project: Project, step: tuple[str, str]) -> Iterator[Path]:
    """Yield an empty folder on the clients' side, and delete it afterwards.

    What a killed run left there is deleted first: a release is never resumed.
    """
    stage, key = step
    folder = private_folder(project.clients) / stage / f".shards-{key}"
    private_folder(folder.parent)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield private_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # not empty: other releases of the stage
            folder.parent.rmdir()


def is_scattered(job: blocks.Job) -> bool:
    """Return whether the stage of a job is computed by shards and buckets."""
    functions = stage_functions(job.module)
    return hasattr(functions, "shard") and hasattr(functions, "join")


def draw_buckets(
    job: blocks.Job, places: Sequence[Place], engine: Engine, tell: Tell | None
) -> Iterator[Batch]:
    """Draw all shards, then yield place and rows of the table by bucket."""
    counts = {place: _prepare_shards(job, place) for place in places}
    every = [(place, n) for place, count in counts.items() for n in range(count)]
    say = tell or (lambda _done, _all: None)
    say(0, len(every))
    for done, _ in enumerate(engine.run(partial(draw_shard, job), every), start=1):
        say(done, len(every))
    for place in places:
        yield from _merge_buckets(job, place, counts[place])


def _prepare_shards(job: blocks.Job, place: Place) -> int:
    """Write the data that shards of a repetition share; return their number."""
    context, functions = _stage_context(job, place), stage_functions(job.module)
    if hasattr(functions, "shared"):
        for name, values in functions.shared(context).items():
            np.save(
                create_empty_file(
                    Path(job.scratch) / f"{_shared_prefix(place)}.{name}.npy"
                ),
                values,
                allow_pickle=False,
            )
    count: int = functions.shard_count(
        context.inputs, context.params, context.metadata, place
    )
    return count


def draw_shard(job: blocks.Job, unit: tuple[Place, int]) -> None:
    """Compute one shard and write its file atomically.

    Where an engine has it drawn twice at once, the file that is there first stays.
    """
    place, number = unit
    with one_thread():
        scattered = stage_functions(job.module).shard(
            _stage_context(job, place), number
        )
    clear_cache()  # nobody reads this shard again
    if not isinstance(scattered, Scattered):
        raise InternalError(f"{job.module}: shard {number} goes to no buckets")
    batch, sizes = _sort_by_bucket(job, place, scattered)
    file = _shard_file(job, place, number)
    aside = create_empty_file(file.with_name(f".{file.name}.{uuid4().hex}"))
    with pa.OSFile(str(aside), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as to:
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            to.write_batch(batch.slice(end - size, size))
    with suppress(FileExistsError):
        os.link(aside, file)
    aside.unlink()


def _sort_by_bucket(
    job: blocks.Job, place: Place, scattered: Scattered
) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
    """Return the rows of a shard sorted by bucket, and the bucket sizes."""
    table = _scattered_table(job)
    order = np.argsort(scattered.buckets, kind="stable")
    rows = {name: values[order] for name, values in scattered.rows[table.name].items()}
    sizes = np.bincount(scattered.buckets, minlength=scattered.count)
    return to_arrow(table, job.index, place, rows), sizes


def _merge_buckets(job: blocks.Job, place: Place, count: int) -> Iterator[Batch]:
    """Yield the rows of each bucket, as the stage arranges them."""
    functions, context, table = (
        stage_functions(job.module),
        _stage_context(job, place),
        _scattered_table(job),
    )
    with ExitStack() as stack:
        files = _ShardFiles(
            stack, [_shard_file(job, place, number) for number in range(count)]
        )
        for bucket in range(files.buckets):
            arrived = to_columns(table.name, files.read_bucket(bucket))
            rows = functions.join(context, bucket, {table.name: arrived})[table.name]
            yield place, to_arrow(table, job.index, place, rows)


class _ShardFiles:
    """The files of a repetition's shards, of which a bounded number stay open."""

    def __init__(self, stack: ExitStack, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._open = {p: stack.enter_context(_open_shard(p)) for p in paths[:_OPEN]}

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return int(self._open[self._paths[0]].num_record_batches)

    def read_bucket(self, bucket: int) -> pa.Table:
        """Return the rows of a bucket, in the order of the shards."""
        batches_read = [self._batch(path, bucket) for path in self._paths]
        return pa.Table.from_batches(batches_read).unify_dictionaries().combine_chunks()

    def _batch(self, path: Path, bucket: int) -> pa.RecordBatch:
        if path in self._open:
            return self._open[path].get_batch(bucket)
        with _open_shard(path) as reader:
            return reader.get_batch(bucket)


@contextmanager
def _open_shard(path: Path) -> Iterator[Any]:
    """Open a file from which single batches are read, without mapping it."""
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
        yield reader


def _scattered_table(job: blocks.Job) -> Table:
    if len(job.tables) != 1:
        raise InternalError(f"{job.module} scatters the rows of more than one table")
    return job.tables[0]


def _stage_context(job: blocks.Job, place: Place) -> StageContext:
    """Return the context of a repetition, with what its shards share."""
    inputs = {name: Artifact(as_path(path)) for name, path in job.inputs.items()}
    shared = {
        path.name.split(".")[1]: np.load(path, mmap_mode="r")
        for path in sorted(Path(job.scratch).glob(f"{_shared_prefix(place)}.*.npy"))
    }
    arguments = job.stage, place, job.sizes, inputs, job.params, job.metadata
    return StageContext(*arguments, entropy_source=job.words, shared=shared)


def _shared_prefix(place: Place) -> str:
    return "shared-" + "_".join(map(str, place))


def _shard_file(job: blocks.Job, place: Place, number: int) -> Path:
    return Path(job.scratch) / f"shard-{'_'.join(map(str, place))}-{number}.arrow"
