"""Execution of a step: blocks of replicates, then one commit; a kill costs a block."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa

from curvote.base.durable import create_empty_file, private_folder
from curvote.base.errors import InternalError, UserError
from curvote.base.object_store import ObjectStoreError, as_path, is_remote, store_error
from curvote.base.threads import one_thread
from curvote.chain import stage as stages
from curvote.data.raw_files import digest
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import RawInput
from curvote.pipeline.plan.step import Step
from curvote.pipeline.release.production import provenance, release_step
from curvote.pipeline.release.windows import find_round
from curvote.pipeline.run.engines import Engine, worker_address
from curvote.pipeline.run.transit import Parcel, Transit, why_here
from curvote.pipeline.store import arrow, artifacts, locations
from curvote.pipeline.store.growth import first_replicates, stage_parameters
from curvote.pipeline.store.parquet import Batch, clear_cache, merge_blocks
from curvote.pipeline.store.tables import SHARD

Progress = Callable[[int, int], None]
DEFAULT_BLOCK = 10
_FEW_ROWS = 100_000


def execute_step(
    project: Project,
    step: Step,
    *,
    engine: Engine | None = None,
    block: int | None = None,
    progress: Progress | None = None,
    words: stages.EntropySource = stages.system_entropy,
) -> artifacts.ArtifactRef:
    """Compute and commit one step; finished blocks of a killed run are used again.

    The tables depend neither on ``engine`` (None: this process) nor on ``block`` (how
    many replicates are computed at once; None: by their size). A release draws from
    ``words``, by shard; tests give some that can be had again. UserError: a full disk,
    a folder that cannot be written, or an object store for what only its owner reads.
    """
    target = artifacts.artifact(project, step.stage.name, step.key).path
    if step.owner_only and is_remote(target):
        raise UserError(
            f"{step.name}: whoever knows the seed of this study can take the noise off"
            " records that nobody published. You alone may read such tables, but others"
            f" read {target.parent}: nothing was stored there. Run this study in a"
            " project without runtime.artifacts."
        )
    try:
        with _key_locked(project, step):
            compute = partial(
                _build_artifact,
                project,
                step,
                target,
                engine=engine or Engine(),
                block=block,
                progress=progress,
                words=words,
            )
            if step.release and not step.release.by_envelope:
                return release_step(project, step, target, compute).ref
            made_meanwhile = artifacts.Artifact(target).problem(content=True) is None
            if made_meanwhile and not step.forced:
                return artifacts.Artifact(target).ref
            return artifacts.commit(compute(), target).ref
    except OSError as error:
        raise _storage_error(error, target) from error


def _build_artifact(
    project: Project,
    step: Step,
    target: Path,
    *,
    engine: Engine,
    block: int | None,
    progress: Progress | None,
    words: stages.EntropySource,
) -> Path:
    """Return the temporary folder with all files of the artifact."""
    job = _prepare_job(project, step, target)
    folder, tables = Path(job.folder), {}
    if why_here(step):
        engine = engine.local_engine()
    functions = stages.stage_functions(job.module)
    if hasattr(functions, "shard") and hasattr(functions, "join"):  # through buckets
        (table,) = step.stage.tables
        with scratch_folder(project, step.id) as scratch:
            scratch_job = replace(job, scratch=str(scratch), words=words)
            near = engine.local_engine()  # as what shards share is a folder
            batches = draw_buckets(scratch_job, step.places, near, progress)
            entry = merge_blocks(folder / f"{table.name}.parquet", batches)
        _write_manifest(step, folder, job.metadata, {table.name: entry})
        return folder
    places, earlier, source = step.places, step.earlier, None
    if earlier is not None:  # altered since the plan: UserError
        source = artifacts.checked_artifact(project, step.stage.name, earlier.key)
        places = tuple(place for place in places if place[0] >= earlier.reused_count)
    # What repeats inside a replicate belongs together: it reads each other's tables.
    fitting = step.stage.block or block or _block_size(len(places), job)
    length = max(fitting, *step.sizes[1:], 1)
    parts = [places[at : at + length] for at in range(0, len(places), length)]
    small = bool(job.inputs) and not step.stage.block and _input_rows(job) <= _FEW_ROWS
    alone = small and not engine.workers_stated
    waiting = [part for part in parts if not block_folder(folder, part).is_dir()]
    transit = engine.transit if waiting else None
    compute: Callable[[Part], Any] = partial(compute_block, job)
    if transit is not None:
        sources = {n: artifacts.artifact(project, *i) for n, i in step.sources.items()}
        shared = {name: transit.share_input(source) for name, source in sources.items()}
        compute = partial(send_block, replace(job, inputs=shared), transit)
    chosen = Engine() if alone else engine
    for result in _run_all(chosen, compute, waiting, len(parts), progress):
        if transit is not None:
            part, parcel = result
            with _atomic_folder(block_folder(folder, part)) as arriving:
                transit.fetch_block(parcel, arriving)
    if transit is not None:
        transit.delete_blocks(folder.name)
    for name in (table.name for table in step.stage.tables):
        computed = (read_block(block_folder(folder, part), name) for part in parts)
        reused: Iterable[Batch] = ()
        if earlier is not None and source is not None:
            reused = first_replicates(source, name, earlier.reused_count)
        batches = chain(reused, *computed)
        tables[name] = merge_blocks(folder / f"{name}.parquet", batches)
    _write_manifest(step, folder, job.metadata, tables)
    return folder


def _block_size(number: int, job: Job) -> int:
    """Return how many repetitions a block holds: many small ones share one.

    They read a shard's rows together at most, and are a quarter of all at most.
    """
    rows = _input_rows(job)
    fitting = SHARD * number // rows if rows else 0
    return max(DEFAULT_BLOCK, min(fitting, number // 4))


def _input_rows(job: Job) -> int:
    return sum(
        artifacts.open_artifact(as_path(place)).n_rows for place in job.inputs.values()
    )


def _prepare_job(project: Project, step: Step, target: Path) -> Job:
    temporary = locations.temporary_folder(project, target)
    if step.owner_only:
        private_folder(temporary)
    temporary.mkdir(exist_ok=True)
    inputs = {n: artifacts.artifact(project, *at) for n, at in step.sources.items()}
    paths = {file.name: file.path for file in step.raw}
    params = stage_parameters(step) | {"raw.paths": paths}
    if step.release and step.release.by_envelope:  # so a stage finds its envelopes
        # Of several windows the last one that has answers.
        *_, newest = str(step.params["accepted"]).split(", ")
        named, _, digest_of_newest = newest.partition(" ")
        round_ = find_round(project, named if digest_of_newest else step.release.id)
        if round_ is None:
            raise InternalError(f"{step.name}: its round was never opened")
        place, task = str(project.intake), round_.task.to_json()
        params |= {"intake.path": place, "intake.round": round_.id, "intake.task": task}
    functions, metadata = stages.stage_functions(step.stage.module), dict[str, Any]()
    if hasattr(functions, "metadata"):
        metadata = functions.metadata(inputs, params)
    _refuse_changed_files(step.raw)
    if step.raw:
        raw = [{"name": f.name, **f.key_entry, "origin": f.origin} for f in step.raw]
        metadata = metadata | {"raw": raw}
    return Job(
        stage=step.stage.name,
        module=step.stage.module,
        tables=step.stage.tables,
        index=step.index,
        sizes=step.sizes,
        inputs={name: str(source.path) for name, source in inputs.items()},
        params=params,
        metadata=metadata,
        folder=str(temporary),
    )


def _refuse_changed_files(planned: Sequence[RawInput]) -> None:
    for file in planned:
        if digest(as_path(file.path)) != file.sha256:
            raise UserError(f"{file.path} changed while it was read; run again.")


def _write_manifest(
    step: Step,
    temporary: Path,
    metadata: stages.Metadata,
    tables: dict[str, dict[str, Any]],
) -> None:
    """Delete the blocks and write the manifest, if raw files are unchanged.

    Blocks go first: no later run may go on from those of a file that changed.
    """
    delete_blocks(temporary)
    _refuse_changed_files(step.raw)
    components = {n: part for n, part in step.components.items() if n != "release"}
    manifest = {
        "stage": step.stage.name,
        "side": step.stage.side,
        "key": step.key,
        "mark": step.sensitivity,
        "private": step.private,
        "frozen": step.frozen,
        "components": components,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "tables": tables,
        "facts": metadata,
    } | provenance(step)
    artifacts.write_json(temporary / artifacts.MANIFEST, manifest)


@contextmanager
def _key_locked(project: Project, step: Step) -> Iterator[None]:
    """Hold the lock of one key: a second process waits, then finds the result."""
    artifacts.make_stage_folder(project, step.stage.name)
    locks = private_folder(project.state) / "locks"
    locks.mkdir(exist_ok=True)
    with (locks / "-".join(step.id)).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _storage_error(error: OSError, target: Path) -> UserError:
    if "AWS Error" in str(error):  # while a file was read
        return store_error(error, target)
    place = error.filename or target
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"no space left while writing {place}. What was stored before is intact;"
            " free some space (`curvote gc`) and run the same command to go on."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UserError(f"no permission to write {place}; nothing was stored.")
    return UserError(f"{place}: {error.strerror or error}; nothing was stored.")


_BUFFER: Final = 1 << 20
_METADATA_KEY: Final = "curvote"  # whose the rows of a batch are, and how many


class BlockWriter:
    """A writer of one block: an Arrow file for each table.

    Small repetitions are turned into one batch: that costs as much as a single one.
    """

    def __init__(
        self, folder: Path, tables: Sequence[stages.Table], index: tuple[str, ...]
    ) -> None:
        self._folder, self._index = folder, index
        self._tables = {table.name: table for table in tables}
        self._buffered: dict[str, list[tuple[stages.Place, stages.Columns]]] = {}
        self._writers: dict[str, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> BlockWriter:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        with self._stack:
            if not failed:
                for name in self._buffered:
                    self._flush_table(name)

    @property
    def missing_tables(self) -> list[str]:
        """The tables to which nothing was added."""
        return sorted(self._tables.keys() - self._buffered.keys())

    def add_rows(
        self, table: str, place: stages.Place, columns: stages.Columns
    ) -> None:
        """Add rows of a repetition to a table; an undeclared one: InternalError."""
        if table not in self._tables:
            raise InternalError(f"{self._folder.parent.name} has no table {table}")
        buffered = self._buffered.setdefault(table, [])
        if buffered and not arrow.same_kinds(buffered[-1][1], columns):
            self._flush_table(table)
        buffered.append((place, columns))
        if sum(_count_rows(columns) for _, columns in buffered) > SHARD:
            self._flush_table(table)

    def _flush_table(self, name: str) -> None:
        pieces = self._buffered[name]
        if not pieces:
            return
        batch = arrow.merge_repetitions(self._tables[name], self._index, pieces)
        counts = [(place, _count_rows(columns)) for place, columns in pieces]
        pieces.clear()
        if name not in self._writers:
            file = create_empty_file(_block_file(self._folder, name))
            raw = self._stack.enter_context(pa.OSFile(str(file), "wb"))
            sink = self._stack.enter_context(pa.BufferedOutputStream(raw, _BUFFER))
            writer = pa.ipc.new_stream(sink, batch.schema)
            self._writers[name] = self._stack.enter_context(writer)
        try:
            self._writers[name].write_batch(batch, {_METADATA_KEY: json.dumps(counts)})
        except pa.ArrowInvalid as error:
            message = f"the pieces of one block differ in their columns: {error}"
            raise InternalError(message) from error


def read_block(folder: Path, table: str) -> Iterator[Batch]:
    """Yield place and rows of each repetition in a block's file, in order.

    Batch after batch is read: pages of a mapped file would count as memory.
    """
    with pa.OSFile(str(_block_file(folder, table))) as source:
        stream = pa.ipc.open_stream(source)
        for batch, metadata in stream.iter_batches_with_custom_metadata():
            at = 0
            for place, rows in json.loads(metadata[_METADATA_KEY]):
                yield tuple(place), batch.slice(at, rows)
                at += rows


def _block_file(folder: Path, table: str) -> Path:
    return folder / f"{table}.arrow"


def _count_rows(columns: stages.Columns) -> int:
    return len(next(iter(columns.values())))


PREFIX: Final = "block-"
Part = tuple[stages.Place, ...]


@dataclass(frozen=True)
class Job:
    """The description of a step's blocks for workers; it holds paths, no tables.

    ``scratch`` is for what must not stand beside the tables
    (`curvote.pipeline.run.execution`).
    """

    stage: str
    module: str
    tables: tuple[stages.Table, ...]
    index: tuple[str, ...]
    sizes: stages.Place
    inputs: dict[str, str]
    params: dict[str, Any]
    metadata: dict[str, Any]
    folder: str
    scratch: str = ""
    words: stages.EntropySource = stages.system_entropy


def block_folder(folder: Path, part: Part) -> Path:
    """Return the folder of one block, which exists once the block is complete."""
    first, last = ("_".join(map(str, place)) for place in (part[0], part[-1]))
    return folder / f"{PREFIX}{first}-{last}"


def _run_all(
    engine: Engine,
    function: Callable[[Any], Any],
    waiting: Sequence[Any],
    total: int,
    progress: Progress | None,
) -> Iterator[Any]:
    """Yield the results of what is waiting, and tell how much of all is done."""
    tell, before = progress or (lambda _done, _all: None), total - len(waiting)
    tell(before, total)
    for done, result in enumerate(engine.run(function, waiting), start=before + 1):
        yield result
        tell(done, total)


def compute_block(job: Job, part: Part) -> None:
    """Compute one block and write its tables, all of them or nothing."""
    inputs = {
        name: artifacts.open_artifact(as_path(place))
        for name, place in job.inputs.items()
    }
    functions = stages.stage_functions(job.module)
    with one_thread():
        if part == (stages.SHARED,) and hasattr(functions, "shared_rows"):
            every = functions.shared_rows(inputs, job.params, job.metadata)
            produced: Iterator[tuple[stages.Place, stages.Rows]] = (
                (stages.SHARED, rows) for rows in every
            )
        else:
            arguments = job.sizes, inputs, job.params, job.metadata
            contexts = [
                stages.StageContext(job.stage, place, *arguments) for place in part
            ]
            if hasattr(functions, "batch"):
                produced = zip(part, functions.batch(contexts), strict=True)
            else:
                produced = (
                    (context.place, rows)
                    for context in contexts
                    for rows in stages.make_rows(functions, context)
                )
        with (
            _atomic_folder(block_folder(Path(job.folder), part)) as folder,
            BlockWriter(folder, job.tables, job.index) as files,
        ):
            for place, tables in produced:
                for name, columns in tables.items():
                    files.add_rows(name, place, columns)
            if files.missing_tables:
                raise InternalError(f"{job.module} did not make {files.missing_tables}")


def send_block(job: Job, transit: Transit, part: Part) -> tuple[Part, Parcel]:
    """Compute a block on a machine that sees the object store alone; send it there."""
    try:
        with TemporaryDirectory(prefix="curvote-") as folder:
            compute_block(replace(job, folder=folder), part)
            block = block_folder(Path(folder), part)
            return part, transit.send_block(block, Path(job.folder).name)
    except ObjectStoreError as error:
        raise UserError(f"worker {worker_address()}: {error}") from error


@contextmanager
def _atomic_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to ``target`` at the end.

    An engine may do a block twice at once; then the first one counts as a whole.
    """
    temporary = target.with_name(f".{target.name}-{uuid4().hex}")
    temporary.mkdir()
    try:
        yield temporary
    except BaseException:  # or each try on a full disk takes more of it
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    try:
        temporary.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(temporary)


def delete_blocks(folder: Path) -> None:
    """Delete all blocks in ``folder``, unfinished ones too.

    Each loses its name first: who is killed here leaves no part of a block that a later
    run would take for all of it.
    """
    for block in folder.glob(f"{PREFIX}*"):
        block.rename(block.with_name(f".{block.name}-{uuid4().hex}"))
    for leftover in folder.glob(f".{PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)


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


def draw_buckets(
    job: Job, places: Sequence[stages.Place], engine: Engine, tell: Progress | None
) -> Iterator[Batch]:
    """Draw all shards, then yield place and rows of the table by bucket."""
    counts = {place: _prepare_shards(job, place) for place in places}
    every = [(place, n) for place, count in counts.items() for n in range(count)]
    for _ in _run_all(engine, partial(draw_shard, job), every, len(every), tell):
        pass
    for place in places:
        yield from _merge_buckets(job, place, counts[place])


def _prepare_shards(job: Job, place: stages.Place) -> int:
    """Write the data that shards of a repetition share; return their number."""
    context, functions = _stage_context(job, place), stages.stage_functions(job.module)
    if hasattr(functions, "shared"):
        for name, values in functions.shared(context).items():
            path = Path(job.scratch) / f"{_shared_prefix(place)}.{name}.npy"
            np.save(create_empty_file(path), values, allow_pickle=False)
    arguments = context.inputs, context.params, context.metadata
    count: int = functions.shard_count(*arguments, place)
    return count


def draw_shard(job: Job, unit: tuple[stages.Place, int]) -> None:
    """Compute one shard and write its file atomically.

    Where an engine has it drawn twice at once, the file that is there first stays.
    """
    place, number = unit
    with one_thread():
        draw = stages.stage_functions(job.module).shard
        scattered = draw(_stage_context(job, place), number)
    clear_cache()  # nobody reads this shard again
    if not isinstance(scattered, stages.Scattered):
        raise InternalError(f"{job.module}: shard {number} goes to no buckets")
    table = _scattered_table(job)
    order = np.argsort(scattered.buckets, kind="stable")
    rows = {name: values[order] for name, values in scattered.rows[table.name].items()}
    sizes = np.bincount(scattered.buckets, minlength=scattered.count)
    batch = arrow.to_arrow(table, job.index, place, rows)
    file = _shard_file(job, place, number)
    aside = create_empty_file(file.with_name(f".{file.name}.{uuid4().hex}"))
    with pa.OSFile(str(aside), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as to:
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            to.write_batch(batch.slice(end - size, size))
    with suppress(FileExistsError):
        os.link(aside, file)
    aside.unlink()


def _merge_buckets(job: Job, place: stages.Place, count: int) -> Iterator[Batch]:
    """Yield the rows of each bucket, as the stage arranges them."""
    functions, context = stages.stage_functions(job.module), _stage_context(job, place)
    table = _scattered_table(job)
    with ExitStack() as stack:
        paths = [_shard_file(job, place, number) for number in range(count)]
        open_shards = {p: stack.enter_context(_open_shard(p)) for p in paths[:_OPEN]}

        def read_batch(path: Path, bucket: int) -> pa.RecordBatch:
            with ExitStack() as stack:
                reader = open_shards.get(path) or stack.enter_context(_open_shard(path))
                return reader.get_batch(bucket)

        for bucket in range(open_shards[paths[0]].num_record_batches):
            batches = [read_batch(path, bucket) for path in paths]
            parts = pa.Table.from_batches(batches).unify_dictionaries()
            arrived = arrow.to_columns(table.name, parts.combine_chunks())
            rows = functions.join(context, bucket, {table.name: arrived})[table.name]
            yield place, arrow.to_arrow(table, job.index, place, rows)


@contextmanager
def _open_shard(path: Path) -> Iterator[Any]:
    """Open a file from which single batches are read, without mapping it."""
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
        yield reader


def _scattered_table(job: Job) -> stages.Table:
    if len(job.tables) != 1:
        raise InternalError(f"{job.module} scatters the rows of more than one table")
    return job.tables[0]


def _stage_context(job: Job, place: stages.Place) -> stages.StageContext:
    """Return the context of a repetition, with what its shards share."""
    inputs = {
        name: artifacts.Artifact(as_path(path)) for name, path in job.inputs.items()
    }
    shared = {
        path.name.split(".")[1]: np.load(path, mmap_mode="r")
        for path in sorted(Path(job.scratch).glob(f"{_shared_prefix(place)}.*.npy"))
    }
    arguments = job.stage, place, job.sizes, inputs, job.params, job.metadata
    return stages.StageContext(*arguments, entropy_source=job.words, shared=shared)


def _shared_prefix(place: stages.Place) -> str:
    return "shared-" + "_".join(map(str, place))


def _shard_file(job: Job, place: stages.Place, number: int) -> Path:
    return Path(job.scratch) / f"shard-{'_'.join(map(str, place))}-{number}.arrow"
