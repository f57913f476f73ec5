"""Engines: the same bytes from each, and blocks of dead workers are done again."""

import os
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from curvote.base.errors import UserError
from curvote.base.threads import one_thread
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import Runtime
from curvote.pipeline.run import engines, execution
from curvote.pipeline.run.engines import (
    BACKENDS,
    MAX_TRIES,
    Engine,
    choose_engine,
    exceeded_memory,
)
from tests import dying, plain

# As many blocks as make a difference.
SMALL = plain.FEW | {"replicates": 3}


@pytest.fixture(scope="module")
def expected() -> Iterator[dict[str, str]]:
    """Return the digests of a pipeline's tables, computed in this process."""
    with TemporaryDirectory() as folder:
        project = plain.write(Path(folder), tiny=SMALL)
        yield plain.hashes(project, plain.run(project))


@pytest.fixture(scope="module")
def dask() -> Iterator[Engine]:
    """Return dask with two workers; they start once, at the first block."""
    with Engine("dask", 2) as engine:
        yield engine


@pytest.fixture(params=["local", "dask"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return each engine whose workers are processes, with two of them."""
    if request.param == "dask":
        found: Engine = request.getfixturevalue("dask")
        return found
    return Engine("local", 2)


@pytest.mark.parametrize(
    ("name", "workers", "block"),
    [("threads", 3, 5), ("local", 2, 2), ("dask", 2, 1)],
)
def test_tables_depend_neither_on_engine_nor_workers_nor_blocks(
    expected: dict[str, str],
    tmp_path: Path,
    dask: Engine,
    name: str,
    workers: int,
    block: int,
) -> None:
    """Same seed, same bytes, whatever computes them."""
    project = plain.write(tmp_path, tiny=SMALL)
    engine = dask if name == "dask" else Engine(name, workers)
    made = plain.run(project, block=block, engine=engine)
    assert plain.hashes(project, made) == expected


def test_a_worker_killed_twice_changes_no_byte(
    expected: dict[str, str],
    tmp_path: Path,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By kill -9, in the middle of a block: its block is done again by another."""
    project = plain.write(tmp_path, tiny=SMALL)
    monkeypatch.setattr(execution, "compute_block", dying.compute)
    made = plain.run(project, block=1, engine=engine)
    assert len(list(tmp_path.glob("data/deaths/*"))) >= dying.DEATHS
    assert plain.hashes(project, made) == expected


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("dask", marks=pytest.mark.faults)], indirect=True
)
def test_a_block_that_ends_each_worker_is_given_up(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a stated number of times, in one message; the others were done."""
    seen, tries = [], MAX_TRIES
    if engine.name == "local":  # each try starts all workers
        tries = 2
        monkeypatch.setattr(engines, "MAX_TRIES", tries)
    with pytest.raises(UserError, match=f"^{tries} workers died at one block") as told:
        seen.extend(engine.run(dying.always, range(4)))
    assert "the same command goes on" in str(told.value)
    assert "--workers" in str(told.value)


@pytest.mark.faults  # what tells such an end from others is tried below
def test_a_worker_over_its_memory_limit_is_replaced_then_said() -> None:
    """It takes no more than it may, and the message says that it was memory."""
    with (
        Engine("dask", 1, memory=400 * 2**20) as engine,
        pytest.raises(UserError, match="more than their memory limit of 400 MiB"),
    ):
        list(engine.run(dying.greedy, range(2)))


def test_word_of_a_worker_s_memory_may_come_after_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is sent beside the end, by another way; that of another worker counts not."""
    told = iter([(), ((0, {"worker": "a"}),)])
    late: Any = SimpleNamespace(get_events=lambda _topic: next(told))
    assert exceeded_memory(late, "a")
    monkeypatch.setattr(engines, "EVENT_SECONDS", 0.05)
    other: Any = SimpleNamespace(get_events=lambda _topic: ((0, {"worker": "b"}),))
    assert not exceeded_memory(other, "a")


@pytest.mark.parametrize("name", ["local", "threads"])
def test_a_block_without_memory_is_a_user_error(name: str) -> None:
    """No traceback of numpy's: fewer workers or smaller blocks are the cure."""
    with pytest.raises(UserError, match="not enough memory for a block") as told:
        list(Engine(name, 2).run(dying.starved, range(3)))
    assert "--block" in str(told.value)


def test_an_error_of_a_stage_passes_through_each_engine(engine: Engine) -> None:
    """It is raised as it is, not repeated, and not taken for a dead worker."""
    with pytest.raises(ValueError, match="invalid literal"):
        list(engine.run(int, ["1", "x", "2"]))


def test_one_worker_of_this_machine_is_this_process(dask: Engine) -> None:
    """Nothing is started for nothing; dask always works elsewhere."""
    alone = {
        *Engine().run(dying.who, range(2)),
        *Engine("local", 4).run(dying.who, [0]),
    }
    assert alone == {os.getpid()}
    assert os.getpid() not in set(dask.run(dying.who, range(3)))


def test_several_threads_at_once_keep_blas_at_one_thread() -> None:
    """The first to leave must not give the others their threads back."""
    first, second = one_thread(), one_thread()
    with threadpool_limits(2):
        with first:
            second.__enter__()
        assert _blas() == {1}
        second.__exit__(None, None, None)
        assert _blas() == {2}


def _blas() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return {
        one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
    }


def test_a_command_goes_before_the_file(project: Project) -> None:
    """Engine and workers each; a cluster belongs to dask alone."""
    stated = Runtime(engine="dask", workers=3, cluster="tcp://there:8786")
    asked = choose_engine(project, stated, None, None)
    assert (asked.name, asked.workers, asked.cluster) == ("dask", 3, stated.cluster)
    asked = choose_engine(project, stated, "threads", 2)
    assert (asked.name, asked.workers, asked.cluster) == ("threads", 2, None)
    assert choose_engine(project, Runtime(), None, None).workers == os.cpu_count()


def test_an_engine_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the one that was meant, or the extra that brings it."""
    with pytest.raises(UserError, match="Did you mean 'threads'"):
        Engine("thread")
    with pytest.raises(UserError, match="Known: dask, local, threads"):
        Engine("spark")
    monkeypatch.setattr(engines, "find_spec", lambda _name: None)
    with pytest.raises(UserError, match=r"pip install 'curvote\[dask\]'"):
        Engine("dask")
    assert util.find_spec("distributed"), "what is tested here is installed"


def test_the_names_of_the_file_are_the_engines() -> None:
    """A fourth is a name in both places."""
    allowed = Runtime.model_json_schema()["properties"]["engine"]["enum"]
    assert allowed == list(BACKENDS)
