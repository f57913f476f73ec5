"""Blocks of repetitions: Arrow files of one block, and computation by an engine."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from curvote.base.durable import create_empty_file
from curvote.base.errors import InternalError
from curvote.chain.stage import (
    SHARED,
    Columns,
    EntropySource,
    Place,
    Rows,
    StageContext,
    Table,
    make_rows,
    stage_functions,
    system_entropy,
)
from curvote.pipeline.run.engines import Engine
from curvote.pipeline.run.workers import one_thread
from curvote.pipeline.store.arrow import merge_repetitions, same_kinds
from curvote.pipeline.store.artifacts import open_artifact
from curvote.pipeline.store.locations import as_path
from curvote.pipeline.store.table_files import Batch
from curvote.pipeline.store.tables import SHARD

_BUFFER: Final = 1 << 20
_METADATA_KEY: Final = "curvote"  # whose the rows of a batch are, and how many


class BlockWriter:
    """A writer of one block: an Arrow file for each table.

    Small repetitions are turned into one batch: that costs as much as a single one.
    """

    def __init__(
        self, folder: Path, tables: Sequence[Table], index: tuple[str, ...]
    ) -> None:
        self._folder, self._index = folder, index
        self._tables = {table.name: table for table in tables}
        self._buffered: dict[str, list[tuple[Place, Columns]]] = {}
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

    def add_rows(self, table: str, place: Place, columns: Columns) -> None:
        """Add rows of a repetition to a table; an undeclared one: InternalError."""
        if table not in self._tables:
            raise InternalError(f"{self._folder.parent.name} has no table {table}")
        buffered = self._buffered.setdefault(table, [])
        if buffered and not same_kinds(buffered[-1][1], columns):
            self._flush_table(table)
        buffered.append((place, columns))
        if sum(_count_rows(columns) for _, columns in buffered) > SHARD:
            self._flush_table(table)

    def _flush_table(self, name: str) -> None:
        pieces = self._buffered[name]
        if not pieces:
            return
        batch = merge_repetitions(self._tables[name], self._index, pieces)
        counts = json.dumps(
            [(place, _count_rows(columns)) for place, columns in pieces]
        )
        pieces.clear()
        if name not in self._writers:
            file = create_empty_file(_block_file(self._folder, name))
            raw = self._stack.enter_context(pa.OSFile(str(file), "wb"))
            sink = self._stack.enter_context(pa.BufferedOutputStream(raw, _BUFFER))
            self._writers[name] = self._stack.enter_context(
                pa.ipc.new_stream(sink, batch.schema)
            )
        try:
            self._writers[name].write_batch(batch, {_METADATA_KEY: counts})
        except pa.ArrowInvalid as error:
            raise InternalError(
                f"the pieces of one block differ in their columns: {error}"
            ) from error


def read_block(folder: Path, table: str) -> Iterator[Batch]:
    """Yield place and rows of each repetition in a block's file, in order.

    Batch after batch is read: pages of a mapped file would count as memory.
    """
    with pa.OSFile(str(_block_file(folder, table))) as source:
        for batch, metadata in pa.ipc.open_stream(
            source
        ).iter_batches_with_custom_metadata():
            at = 0
            for place, rows in json.loads(metadata[_METADATA_KEY]):
                yield tuple(place), batch.slice(at, rows)
                at += rows


def _block_file(folder: Path, table: str) -> Path:
    return folder / f"{table}.arrow"


def _count_rows(columns: Columns) -> int:
    return len(next(iter(columns.values())))


PREFIX: Final = "block-"
Part = tuple[Place, ...]
Pieces = Iterator[tuple[Place, Rows]]


@dataclass(frozen=True)
class Job:
    """The description of a step's blocks for workers; it holds paths, no tables.

    ``scratch`` is for what must not stand beside the tables
    (`curvote.pipeline.run.shards`).
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
    functions = stage_functions(job.module)
    with one_thread():
        if part == (SHARED,) and hasattr(functions, "shared_rows"):
            every = functions.shared_rows(inputs, job.params, job.metadata)
            produced: Pieces = ((SHARED, rows) for rows in every)
        else:
            contexts = [
                StageContext(
                    job.stage, place, job.sizes, inputs, job.params, job.metadata
                )
                for place in part
            ]
            produced = _run_stage(functions, contexts)
        _write_block(job, part, produced)


def _run_stage(functions: SimpleNamespace, contexts: Sequence[StageContext]) -> Pieces:
    """Yield place and rows that a stage makes of each repetition."""
    if hasattr(functions, "batch"):
        yield from zip(
            (context.place for context in contexts),
            functions.batch(contexts),
            strict=True,
        )
        return
    for context in contexts:
        for rows in make_rows(functions, context):
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
