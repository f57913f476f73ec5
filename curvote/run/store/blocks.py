"""Blocks of repetitions: computed in any order, in any process, each written once."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from curvote.chain.sharded import make_rows
from curvote.chain.stage import (
    SHARED,
    EntropySource,
    Place,
    Rows,
    StageContext,
    system_entropy,
)
from curvote.chain.tables import Table
from curvote.errors import InternalError
from curvote.run.engines import Engine
from curvote.run.places import as_path
from curvote.run.store.artifacts import open_artifact
from curvote.run.store.block_files import BlockWriter, read_block
from curvote.run.store.merging import Batch
from curvote.run.workers import one_thread

PREFIX: Final = "block-"
Part = tuple[Place, ...]
Pieces = Iterator[tuple[Place, Rows]]


@dataclass(frozen=True)
class Job:
    """The description of a step's blocks for workers; it holds paths, no tables.

    ``scratch`` is for what must not stand beside the tables (`curvote.run.shards`).
    """

    stage: str
    module: str
    tables: tuple[Table, ...]
    index: tuple[str, ...]
    sizes: Place
    inputs: dict[str, str]
    params: dict[str, Any]
    metadata: dict[str, Any]
    folder: str
    scratch: str = ""
    words: EntropySource = system_entropy


def block_folder(folder: Path, part: Part) -> Path:
    """Return the folder of one block, which exists once the block is complete."""
    first, last = ("_".join(map(str, place)) for place in (part[0], part[-1]))
    return folder / f"{PREFIX}{first}-{last}"


def compute_missing(
    job: Job,
    parts: Sequence[Part],
    engine: Engine,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Compute every block that is not there yet, as ``engine`` does it."""
    folder = Path(job.folder)
    waiting = [part for part in parts if not block_folder(folder, part).is_dir()]
    done = len(parts) - len(waiting)
    tell = progress or (lambda _done, _all: None)
    tell(done, len(parts))
    for _ in engine.run(partial(compute_block, job), waiting):
        done += 1
        tell(done, len(parts))


def compute_block(job: Job, part: Part) -> None:
    """Compute one block and write its tables, all of them or nothing."""
    inputs = {name: open_artifact(as_path(place)) for name, place in job.inputs.items()}
    stage = import_module(job.module)
    with one_thread():
        if part == (SHARED,) and hasattr(stage, "pieces"):
            every = stage.pieces(inputs, job.params, job.metadata)
            produced: Pieces = ((SHARED, rows) for rows in every)
        else:
            contexts = [
                StageContext(
                    job.stage, place, job.sizes, inputs, job.params, job.metadata
                )
                for place in part
            ]
            produced = _run_stage(stage, contexts)
        _write_block(job, part, produced)


def _run_stage(stage: Any, contexts: Sequence[StageContext]) -> Pieces:
    """Yield place and rows that a stage makes of each repetition."""
    if hasattr(stage, "block"):
        yield from zip(
            (context.place for context in contexts), stage.block(contexts), strict=True
        )
        return
    for context in contexts:
        for rows in make_rows(stage, context):
            yield context.place, rows


def _write_block(job: Job, part: Part, produced: Pieces) -> None:
    """Write a file a table and show all of them at once."""
    target = block_folder(Path(job.folder), part)
    with (
        _atomic_folder(target) as folder,
        BlockWriter(folder, job.tables, job.index) as files,
    ):
        for place, tables in produced:
            for name, columns in tables.items():
                files.add_rows(name, place, columns)
        if files.missing_tables:
            raise InternalError(f"{job.module} did not make {files.missing_tables}")


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


def read_blocks(folder: Path, parts: Sequence[Part], table: str) -> Iterator[Batch]:
    """Yield the rows of a table in finished blocks, in order."""
    for part in parts:
        yield from read_block(block_folder(folder, part), table)


def delete_blocks(folder: Path) -> None:
    """Delete all blocks in ``folder``, unfinished ones too.

    Each loses its name first: who is killed here leaves no part of a block that a later
    run would take for all of it.
    """
    for block in folder.glob(f"{PREFIX}*"):
        block.rename(block.with_name(f".{block.name}-{uuid4().hex}"))
    for leftover in folder.glob(f".{PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)
