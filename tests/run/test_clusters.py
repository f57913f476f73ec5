"""A cluster that is found: it works as ours do, or the reason why not is told."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.pipeline.run import engines
from curvote.pipeline.run.engines import Engine, check_workers, local_versions
from tests import dying, plain
from tests.processes import until


@contextmanager
def started(*words: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program of dask's; end it and what it started."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{words[0]}", *words[1:]],
        cwd="/",  # or this folder's curvote would come first
        env=os.environ | env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address of a scheduler without workers."""
    port = free_port()
    where = ("--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    with started("scheduler", *where):
        assert until(lambda: _listens(port), 60)
        yield f"tcp://127.0.0.1:{port}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def worker(
    address: str, nanny: str = "--no-nanny", **env: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker, which may have a nanny; two threads, as dask starts them."""
    words = ("worker", address, "--nthreads", "2", "--no-dashboard", nanny)
    with started(*words, **env) as made:
        yield made


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address, and three ways out."""
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 1)
    address = f"tcp://127.0.0.1:{free_port()}"
    with (
        Engine("dask", cluster=address) as engine,
        pytest.raises(UserError, match=f"{address} does not answer within 1 s") as told,
    ):
        list(engine.run(dying.who, [1]))
    assert "--engine local" in str(told.value)


def test_a_cluster_without_workers(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How to start one."""
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 1)
    with (
        Engine("dask", cluster=address) as engine,
        pytest.raises(UserError, match=f"`dask worker {address}`"),
    ):
        list(engine.run(dying.who, [1]))


def test_workers_with_other_code_or_none_are_refused(
    address: str, tmp_path: Path
) -> None:
    """What curvote computes depends on its text, whatever its version says."""
    (tmp_path / "curvote").mkdir()
    (tmp_path / "curvote" / "__init__.py").touch()
    with (
        worker(address, PYTHONPATH=str(tmp_path)),
        Engine("dask", cluster=address) as engine,
        pytest.raises(UserError, match=r"curvote of code \w{8} \(here of code"),
    ):
        list(engine.run(dying.who, [1]))


def test_a_cluster_gives_the_same_bytes_and_is_left_alone(
    address: str, tmp_path: Path
) -> None:
    """Its worker has a nanny that is not ours, and several threads."""
    here = plain.write(tmp_path / "here", tiny=plain.FEW)
    expected = plain.hashes(here, plain.run(here))
    project = plain.write(tmp_path / "there", tiny=plain.FEW)
    with worker(address, "--nanny", PYTHONPATH=os.pathsep.join(sys.path)) as theirs:
        with Engine("dask", cluster=address, root=project.root) as engine:
            made = plain.run(project, block=1, engine=engine)
        assert plain.hashes(project, made) == expected
        assert theirs.poll() is None


def test_a_cluster_that_goes_away_ends_the_stage(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In one message, at once, and without a traceback; nothing waits for ever."""
    port = free_port()
    where = ("--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    found, paths = f"tcp://127.0.0.1:{port}", os.pathsep.join(sys.path)
    with started("scheduler", *where, PYTHONPATH=paths) as scheduler:
        assert until(lambda: _listens(port), 60)
        with (
            worker(found, PYTHONPATH=paths),
            Engine("dask", cluster=found) as engine,
        ):
            done = engine.run(dying.slow, range(100))
            next(done)
            scheduler.kill()
            with pytest.raises(UserError, match=r"went away.*same command"):
                list(done)
    assert "Traceback" not in capfd.readouterr().err


class Client:
    """Two workers: one of these versions, and one as we are; neither sees a file."""

    def __init__(self, **versions: str) -> None:
        own = dict(local_versions())
        self.versions = {"tcp://b:2": own, "tcp://a:1": own | versions}

    def run(self, _function: Any, *probe: str) -> dict[str, Any]:
        """Return what each worker says of its versions, or of a file."""
        return dict.fromkeys(self.versions, False) if probe else self.versions


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"numpy": "0.9"}, r"tcp://a:1: numpy 0\.9 \(here .*Install the same"),
        ({}, r"tcp://a:1, tcp://b:2 .* do not see .* same path"),
    ],
)
def test_workers_that_would_err_are_refused(
    tmp_path: Path, versions: dict[str, str], said: str
) -> None:
    """Other versions might give other bytes, and blocks are files of the project."""
    with pytest.raises(UserError, match=said):
        check_workers(Client(**versions), "tcp://here", tmp_path)


def test_a_worker_without_curvote_is_named() -> None:
    """Whose environment is empty, and what belongs there: not a list of versions."""
    bare = dict.fromkeys(["numpy", "curvote"], "missing")
    with pytest.raises(UserError) as raised:
        check_workers(Client(**bare), "tcp://here", None)
    said = str(raised.value)
    assert said.startswith("tcp://a:1 of the cluster tcp://here: curvote is not")
    assert "tcp://b:2" not in said
