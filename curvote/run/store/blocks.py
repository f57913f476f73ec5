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

from curvote.chain.sharded import made_of
from curvote.chain.stage import SHARED, Fresh, Here, Place, Rows, from_system
from curvote.chain.tables import Table
from curvote.errors import InternalError
from curvote.run.engines import Engine
from curvote.run.places import at
from curvote.run.store.artifacts import stored
from curvote.run.store.block_files import Files, read
from curvote.run.store.merging import Batch
from curvote.run.workers import one_thread

PREFIX: Final = "block-"
Part = tuple[Place, ...]
Pieces = Iterator[tuple[Place, Rows]]


@dataclass(frozen=True)
class Job:
    """All a process needs to compute blocks of one step; holds paths, no tables.

    ``scratch`` is for what must not stand beside the tables (`curvote.run.shards`).
    """

    stage: str
    module: str
    tables: tuple[Table, ...]
    index: tuple[str, ...]
    sizes: Place
    inputs: dict[str, str]
    params: dict[str, Any]
    facts: dict[str, Any]
    folder: str
    scratch: str = ""
    words: Fresh = from_system


def place_of(folder: Path, part: Part) -> Path:
    """Return the folder of one block: it is there when all its tables are."""
    first, last = ("_".join(map(str, place)) for place in (part[0], part[-1]))
    return folder / f"{PREFIX}{first}-{last}"


def run_all(
    job: Job,
    parts: Sequence[Part],
    engine: Engine,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Compute every block that is not there yet, as ``engine`` does it."""
    folder = Path(job.folder)
    waiting = [part for part in parts if not place_of(folder, part).is_dir()]
    done = len(parts) - len(waiting)
    tell = progress or (lambda _done, _all: None)
    tell(done, len(parts))
    for _ in engine.run(partial(compute, job), waiting):
        done += 1
        tell(done, len(parts))


def compute(job: Job, part: Part) -> None:
    """Compute one block and write its tables, all of them or nothing."""
    inputs = {name: stored(at(place)) for name, place in job.inputs.items()}
    stage = import_module(job.module)
    with one_thread():
        if part == (SHARED,) and hasattr(stage, "pieces"):
            every = stage.pieces(inputs, job.params, job.facts)
            made: Pieces = ((SHARED, rows) for rows in every)
        else:
            heres = [
                Here(job.stage, place, job.sizes, inputs, job.params, job.facts)
                for place in part
            ]
            made = _made(stage, heres)
        _write(job, part, made)


def _made(stage: Any, heres: Sequence[Here]) -> Pieces:
    """Yield the tables of each repetition, a part of the rows at a time or whole."""
    if hasattr(stage, "block"):
        yield from zip((here.place for here in heres), stage.block(heres), strict=True)
        return
    for here in heres:
        for rows in made_of(stage, here):
            yield here.place, rows


def _write(job: Job, part: Part, made: Pieces) -> None:
    """Write a file a table and show all of them at once."""
    target = place_of(Path(job.folder), part)
    with _appearing(target) as folder, Files(folder, job.tables, job.index) as files:
        for place, tables in made:
            for name, columns in tables.items():
                files.add(name, place, columns)
        if files.missing:
            raise InternalError(f"{job.module} did not make {files.missing}")


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """Give a folder that gets its name by one rename, if nobody was faster.

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


def batches(folder: Path, parts: Sequence[Part], table: str) -> Iterator[Batch]:
    """Yield what finished blocks hold of a table, in order, one file at a time."""
    for part in parts:
        yield from read(place_of(folder, part), table)


def clear(folder: Path) -> None:
    """Delete all blocks in ``folder``, and what others began of them.

    Each loses its name first: who is killed here leaves no part of a block that a later
    run would take for all of it.
    """
    for block in folder.glob(f"{PREFIX}*"):
        block.rename(block.with_name(f".{block.name}-{uuid4().hex}"))
    for leftover in folder.glob(f".{PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)
