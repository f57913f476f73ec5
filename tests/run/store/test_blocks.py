"""Blocks: whole or not there, and no more of them than pays."""

import errno
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import InternalError
from curvote.chain.stage import ROWS, Columns, Table
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import execution
from curvote.pipeline.run import execution as module
from curvote.pipeline.run.engines import Engine, Function
from curvote.pipeline.run.execution import BlockWriter, execute_step, read_block
from tests import plain


class Counting(Engine):
    """An engine that computes here and tells how many blocks it was given."""

    given: list[int]

    def run(self, function: Function, items: Iterable[Any]) -> Iterator[Any]:
        """Compute every item in this process."""
        every = list(items)
        self.given.append(len(every))
        return map(function, every)


@pytest.mark.parametrize("asked", [True, False])
def test_little_work_is_done_without_workers(project: Project, asked: bool) -> None:
    """Unless the user asked for some; what reads nothing may be of any size."""
    engine = Counting("local", 2, workers_stated=asked)
    engine.given = []
    for step in plain.plan(project).steps[:3]:
        execute_step(project, step, engine=engine, block=2)
    assert engine.given == ([3, 3, 3] if asked else [3])


def test_small_replicates_share_a_block(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as read a shard's rows together, but a quarter of all at most."""
    monkeypatch.setattr(module, "DEFAULT_BLOCK", 1)
    steps = plain.plan(project, "tiny", "replicates=12").steps[:2]
    given: dict[int, list[int]] = {}
    for rows in (200, 400, 10_000):
        monkeypatch.setattr(module, "SHARD", rows)
        engine = Counting("local", 2)
        engine.given = given.setdefault(rows, [])
        for step in steps:
            execute_step(project, replace(step, forced=True), engine=engine)
    assert given == {200: [12, 12], 400: [12, 6], 10_000: [12, 4]}


def test_of_two_that_do_a_block_at_once_the_first_counts(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole: no table of the second stands beside those of the first."""
    step = plain.plan(project).steps[0]
    real, twice = execution.compute_block, []

    def both(job: execution.Job, part: execution.Part) -> None:
        real(job, part)
        first = sorted(execution.block_folder(Path(job.folder), part).iterdir())
        stamps = [file.stat().st_ino for file in first]
        real(job, part)
        again = sorted(execution.block_folder(Path(job.folder), part).iterdir())
        twice.append([file.stat().st_ino for file in again] == stamps)

    monkeypatch.setattr(execution, "compute_block", both)
    made = execute_step(project, step, block=2)
    assert twice == [True] * 3
    assert {file.suffix for file in Path(made.path).iterdir()} == {".parquet", ".json"}


def numbers(kind: str, *values: int) -> Columns:
    """Return a column of whole numbers of some kind."""
    return {"x": np.array(values, dtype=kind)[:, None]}


def test_a_block_gives_back_each_repetition(tmp_path: Path) -> None:
    """Also an empty one, one that comes in parts, and none that was not made."""
    table = Table("t", {"x": ROWS})
    made = [((0,), (1, 2)), ((1,), ()), ((2,), (3,)), ((2,), (4, 5))]
    with BlockWriter(tmp_path, [table], ("replicate",)) as files:
        assert files.missing_tables == ["t"]
        for place, values in made:
            files.add_rows("t", place, numbers("int8", *values))
        assert not files.missing_tables
        with pytest.raises(InternalError, match="no table other"):
            files.add_rows("other", (0,), numbers("int8"))
    found = [(place, len(batch)) for place, batch in read_block(tmp_path, "t")]
    assert found == [(place, len(values)) for place, values in made]


def test_pieces_of_other_kinds_are_our_bug(tmp_path: Path) -> None:
    """Whole numbers of two widths would be read as others."""
    files = BlockWriter(tmp_path, [Table("t", {"x": ROWS})], ("replicate",))
    files.add_rows("t", (0,), numbers("int8", 1))
    files.add_rows("t", (1,), numbers("int16", 1))
    with pytest.raises(InternalError, match="differ in their columns"):
        files.__exit__(None)


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Each try on a full disk would take more of it."""

    def half() -> None:
        with execution._atomic_folder(tmp_path / "block-0-0") as folder:
            (folder / "t.arrow").write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space"):
        half()
    assert not list(tmp_path.iterdir())


def test_who_is_killed_while_deleting_leaves_no_part_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later run would take it for the whole block."""
    block = tmp_path / "block-0-0"
    block.mkdir()
    (block / "t.arrow").touch()
    with monkeypatch.context() as patched:
        patched.setattr(execution.shutil, "rmtree", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            execution.delete_blocks(tmp_path)
    assert not list(tmp_path.glob("block-*"))
    execution.delete_blocks(tmp_path)
    assert not list(tmp_path.iterdir())


def _interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
