"""Making an artifact: blocks of replicates, one commit; a kill costs one block."""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from curvote.chain.stage import Facts, Fresh, Inputs, from_system
from curvote.datasets.raw import digest
from curvote.durable import owner_folder
from curvote.errors import InternalError, UserError
from curvote.run import shards
from curvote.run.config.source import Raw
from curvote.run.engines import Engine
from curvote.run.growing import Taken, given
from curvote.run.places import at, remote, temporary_of
from curvote.run.plan.step import Step
from curvote.run.project import Project
from curvote.run.release.production import round_of
from curvote.run.release.releasing import provenance, release
from curvote.run.remote import refusal
from curvote.run.store import blocks
from curvote.run.store.artifacts import (
    MANIFEST,
    Artifact,
    ArtifactRef,
    artifact,
    commit,
    make_shelf,
    stored,
    write_json,
)
from curvote.run.store.merging import merge
from curvote.run.store.spans import SHARD

Progress = Callable[[int, int], None]
DEFAULT_BLOCK = 10
_FEW_ROWS = 100_000


@dataclass(frozen=True)
class _Parallel:
    """How the blocks of a step are computed; the tables do not depend on it."""

    engine: Engine
    block: int | None
    progress: Progress | None
    words: Fresh


def execute(
    project: Project,
    step: Step,
    *,
    engine: Engine | None = None,
    block: int | None = None,
    progress: Progress | None = None,
    words: Fresh = from_system,
) -> ArtifactRef:
    """Compute and commit one step; finished blocks of a killed run are used again.

    The tables depend neither on ``engine`` (None: this process) nor on ``block`` (how
    many replicates are computed at once; None: by their size). A release draws from
    ``words``, by shard; tests give some that can be had again. UserError: a full disk,
    a folder that cannot be written, or an object store for what only its owner reads.
    """
    target = artifact(project, step.stage.name, step.key).path
    _refuse_to_show(step, target)
    try:
        with _sole_writer(project, step):
            parallel = _Parallel(engine or Engine(), block, progress, words)
            compute = partial(_compute, project, step, target, parallel)
            if step.release and not step.release.by_envelope:
                return release(project, step, target, compute).ref
            made_meanwhile = Artifact(target).problem(content=True) is None
            if made_meanwhile and not step.forced:
                return Artifact(target).ref
            return commit(compute(), target).ref
    except OSError as error:
        raise _storage_error(error, target) from error


def _refuse_to_show(step: Step, target: Path) -> None:
    """Refuse to lay on an object store what only the project's owner may read."""
    if step.closed and remote(target):
        raise UserError(
            f"{step.name}: whoever knows the seed of this study can take the noise off"
            " records that nobody published. You alone may read such tables, but others"
            f" read {target.parent}: nothing was stored there. Run this study in a"
            " project without runtime.artifacts."
        )


def _compute(
    project: Project,
    step: Step,
    target: Path,
    parallel: _Parallel,
) -> Path:
    """Return the temporary folder with everything that the artifact will hold."""
    job = _job(project, step, target)
    if shards.scatters(job):
        return _scattered(project, step, job, parallel)
    taken = Taken.of(project, step)
    places = taken.others(step.places)
    # What repeats inside a replicate belongs together: it reads each other's tables.
    most = step.stage.block or parallel.block or _fitting(len(places), job)
    block = max(most, *step.sizes[1:], 1)
    parts = [places[at : at + block] for at in range(0, len(places), block)]
    engine = Engine() if _few(step, job) and not parallel.engine.asked else None
    blocks.run_all(job, parts, engine or parallel.engine, parallel.progress)
    folder = Path(job.folder)
    tables = {
        name: merge(
            folder / f"{name}.parquet",
            chain(taken.batches(name), blocks.batches(folder, parts, name)),
        )
        for name in (table.name for table in step.stage.tables)
    }
    _finish(step, folder, job.facts, tables)
    return folder


def _fitting(number: int, job: blocks.Job) -> int:
    """Return how many repetitions are computed together: few that are small share one.

    They read a shard's rows together at most, and are a quarter of all at most.
    """
    rows = _rows(job)
    fitting = SHARD * number // rows if rows else 0
    return max(DEFAULT_BLOCK, min(fitting, number // 4))


def _few(step: Step, job: blocks.Job) -> bool:
    """Say whether a stage reads so little that workers would take longer to start.

    Rows are counted, never looked at. Where each repetition takes long, or nothing is
    read, nobody knows.
    """
    return bool(job.inputs) and not step.stage.block and _rows(job) <= _FEW_ROWS


def _rows(job: blocks.Job) -> int:
    return sum(stored(at(place)).rows for place in job.inputs.values())


def _scattered(
    project: Project, step: Step, job: blocks.Job, parallel: _Parallel
) -> Path:
    """Return the temporary folder of a step whose rows go through buckets."""
    folder, (table,) = Path(job.folder), step.stage.tables
    with shards.scratch(project, step.id) as scratch:
        own = replace(job, scratch=str(scratch), words=parallel.words)
        given = own, step.places, parallel.engine, parallel.progress
        entry = merge(folder / f"{table.name}.parquet", shards.batches(*given))
    _finish(step, folder, job.facts, {table.name: entry})
    return folder


def _job(project: Project, step: Step, target: Path) -> blocks.Job:
    temporary = temporary_of(project, target)
    if step.closed:
        owner_folder(temporary)
    temporary.mkdir(exist_ok=True)
    inputs = {n: artifact(project, *at) for n, at in step.sources.items()}
    params = given(step) | {"raw.paths": {file.name: file.path for file in step.raw}}
    params |= _round(project, step)
    return blocks.Job(
        stage=step.stage.name,
        module=step.stage.module,
        tables=step.stage.tables,
        index=step.index,
        sizes=step.sizes,
        inputs={name: str(source.path) for name, source in inputs.items()},
        params=params,
        facts=_facts(step, inputs, params),
        folder=str(temporary),
    )


def _round(project: Project, step: Step) -> dict[str, Any]:
    """Return where a stage finds the envelopes of its round, and what was asked."""
    if step.release is None or not step.release.by_envelope:
        return {}
    found = round_of(project, step.release.id)
    if found is None:
        raise InternalError(f"{step.name}: its round was never opened")
    place, task = str(project.intake), found.task.to_json()
    return {"intake.path": place, "intake.round": found.id, "intake.task": task}


def _facts(step: Step, inputs: Inputs, params: dict[str, Any]) -> Facts:
    module = import_module(step.stage.module)
    facts: Facts = module.facts(inputs, params) if hasattr(module, "facts") else {}
    _refuse_changed(step.raw)
    if step.raw:
        facts = facts | {
            "raw": [{"name": f.name, **f.counted, "origin": f.origin} for f in step.raw]
        }
    return facts


def _refuse_changed(planned: Sequence[Raw]) -> None:
    for file in planned:
        if digest(Path(file.path)) != file.sha256:
            raise UserError(f"{file.path} changed while it was read; run again.")


def _finish(
    step: Step, temporary: Path, facts: Facts, tables: dict[str, dict[str, Any]]
) -> None:
    """Delete the blocks and write the manifest, if the raw files are still the same.

    Blocks go first: no later run may go on from those of a file that changed.
    """
    blocks.clear(temporary)
    _refuse_changed(step.raw)
    manifest = {
        "stage": step.stage.name,
        "side": step.stage.side,
        "key": step.key,
        "mark": step.mark,
        "private": step.private,
        "frozen": step.frozen,
        "components": _told(step),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "tables": tables,
        "facts": facts,
    } | provenance(step)
    write_json(temporary / MANIFEST, manifest)


def _told(step: Step) -> dict[str, Any]:
    """Return a step's components, but not who was released: that is the ledger's."""
    return {name: part for name, part in step.components.items() if name != "release"}


@contextmanager
def _sole_writer(project: Project, step: Step) -> Iterator[None]:
    """Hold the lock of one key: a second process waits, then finds the result."""
    make_shelf(project, step.stage.name)
    locks = owner_folder(project.state) / "locks"
    locks.mkdir(exist_ok=True)
    with (locks / "-".join(step.id)).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _storage_error(error: OSError, target: Path) -> UserError:
    if "AWS Error" in str(error):  # while a file was read
        return refusal(error, target)
    place = error.filename or target
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"no space left while writing {place}. What was stored before is intact;"
            " free some space (`curvote gc`) and run the same command to go on."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UserError(f"no permission to write {place}; nothing was stored.")
    return UserError(f"{place}: {error.strerror or error}; nothing was stored.")
