"""Execution of a step: blocks of replicates, then one commit; a kill costs a block."""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from curvote.base.durable import private_folder
from curvote.base.errors import InternalError, UserError
from curvote.chain import stage
from curvote.data.raw_files import digest
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import RawInput
from curvote.pipeline.plan.step import Step
from curvote.pipeline.release.production import find_round
from curvote.pipeline.release.session import provenance, release_step
from curvote.pipeline.run import blocks
from curvote.pipeline.run.engines import Engine
from curvote.pipeline.store import artifacts, locations
from curvote.pipeline.store.growth import ReusedReplicates, stage_parameters
from curvote.pipeline.store.tables import SHARD, merge_blocks

Progress = Callable[[int, int], None]
DEFAULT_BLOCK = 10
_FEW_ROWS = 100_000


@dataclass(frozen=True)
class _BlockOptions:
    """Options of computing a step's blocks; the tables do not depend on them."""

    engine: Engine
    block: int | None
    progress: Progress | None
    words: stage.EntropySource


def execute_step(
    project: Project,
    step: Step,
    *,
    engine: Engine | None = None,
    block: int | None = None,
    progress: Progress | None = None,
    words: stage.EntropySource = stage.system_entropy,
) -> artifacts.ArtifactRef:
    """Compute and commit one step; finished blocks of a killed run are used again.

    The tables depend neither on ``engine`` (None: this process) nor on ``block`` (how
    many replicates are computed at once; None: by their size). A release draws from
    ``words``, by shard; tests give some that can be had again. UserError: a full disk,
    a folder that cannot be written, or an object store for what only its owner reads.
    """
    target = artifacts.artifact(project, step.stage.name, step.key).path
    if step.owner_only and locations.is_remote(target):
        raise UserError(
            f"{step.name}: whoever knows the seed of this study can take the noise off"
            " records that nobody published. You alone may read such tables, but others"
            f" read {target.parent}: nothing was stored there. Run this study in a"
            " project without runtime.artifacts."
        )
    try:
        with _key_locked(project, step):
            parallel = _BlockOptions(engine or Engine(), block, progress, words)
            compute = partial(_build_artifact, project, step, target, parallel)
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
    parallel: _BlockOptions,
) -> Path:
    """Return the temporary folder with all files of the artifact."""
    job = _prepare_job(project, step, target)
    folder, tables = Path(job.folder), {}
    if blocks.is_scattered(job):  # its rows go through buckets
        (table,) = step.stage.tables
        with blocks.scratch_folder(project, step.id) as scratch:
            scratch_job = replace(job, scratch=str(scratch), words=parallel.words)
            arguments = scratch_job, step.places, parallel.engine, parallel.progress
            batches = blocks.draw_buckets(*arguments)
            entry = merge_blocks(folder / f"{table.name}.parquet", batches)
        _write_manifest(step, folder, job.metadata, {table.name: entry})
        return folder
    reused = ReusedReplicates.for_step(project, step)
    places = reused.new_places(step.places)
    # What repeats inside a replicate belongs together: it reads each other's tables.
    fitting = step.stage.block or parallel.block or _block_size(len(places), job)
    block = max(fitting, *step.sizes[1:], 1)
    parts = [places[at : at + block] for at in range(0, len(places), block)]
    small = bool(job.inputs) and not step.stage.block and _input_rows(job) <= _FEW_ROWS
    alone = small and not parallel.engine.workers_stated
    engine = Engine() if alone else parallel.engine
    blocks.compute_missing(job, parts, engine, parallel.progress)
    for name in (table.name for table in step.stage.tables):
        computed = blocks.read_blocks(folder, parts, name)
        batches = chain(reused.reused_batches(name), computed)
        tables[name] = merge_blocks(folder / f"{name}.parquet", batches)
    _write_manifest(step, folder, job.metadata, tables)
    return folder


def _block_size(number: int, job: blocks.Job) -> int:
    """Return how many repetitions a block holds: many small ones share one.

    They read a shard's rows together at most, and are a quarter of all at most.
    """
    rows = _input_rows(job)
    fitting = SHARD * number // rows if rows else 0
    return max(DEFAULT_BLOCK, min(fitting, number // 4))


def _input_rows(job: blocks.Job) -> int:
    return sum(
        artifacts.open_artifact(locations.as_path(place)).n_rows
        for place in job.inputs.values()
    )


def _prepare_job(project: Project, step: Step, target: Path) -> blocks.Job:
    temporary = locations.temporary_folder(project, target)
    if step.owner_only:
        private_folder(temporary)
    temporary.mkdir(exist_ok=True)
    inputs = {n: artifacts.artifact(project, *at) for n, at in step.sources.items()}
    paths = {file.name: file.path for file in step.raw}
    params = stage_parameters(step) | {"raw.paths": paths}
    if step.release and step.release.by_envelope:  # so a stage finds its envelopes
        round_ = find_round(project, step.release.id)
        if round_ is None:
            raise InternalError(f"{step.name}: its round was never opened")
        place, task = str(project.intake), round_.task.to_json()
        params |= {"intake.path": place, "intake.round": round_.id, "intake.task": task}
    functions, metadata = stage.stage_functions(step.stage.module), dict[str, Any]()
    if hasattr(functions, "metadata"):
        metadata = functions.metadata(inputs, params)
    _refuse_changed_files(step.raw)
    if step.raw:
        raw = [{"name": f.name, **f.key_entry, "origin": f.origin} for f in step.raw]
        metadata = metadata | {"raw": raw}
    return blocks.Job(
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
        if digest(Path(file.path)) != file.sha256:
            raise UserError(f"{file.path} changed while it was read; run again.")


def _write_manifest(
    step: Step,
    temporary: Path,
    metadata: stage.Metadata,
    tables: dict[str, dict[str, Any]],
) -> None:
    """Delete the blocks and write the manifest, if raw files are unchanged.

    Blocks go first: no later run may go on from those of a file that changed.
    """
    blocks.delete_blocks(temporary)
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
        return locations.store_error(error, target)
    place = error.filename or target
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"no space left while writing {place}. What was stored before is intact;"
            " free some space (`curvote gc`) and run the same command to go on."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UserError(f"no permission to write {place}; nothing was stored.")
    return UserError(f"{place}: {error.strerror or error}; nothing was stored.")
