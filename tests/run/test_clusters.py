"""A cluster that is found: it works as ours do, or the reason why not is told."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import InternalError, UserError
from curvote.pipeline.config.schema import Runtime
from curvote.pipeline.run import engines, execution
from curvote.pipeline.run.engines import (
    Engine,
    WorkerCall,
    check_workers,
    choose_engine,
    local_versions,
)
from curvote.pipeline.run.transit import Transit, describe_places, why_here
from curvote.pipeline.store.artifacts import artifact
from tests import dying, object_store, plain, production
from tests.clusters import PATHS, free_port, scheduler, without, worker


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address of a scheduler without workers."""
    with scheduler(PYTHONPATH=PATHS) as (found, _):
        yield found


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
    with worker(address, "--nanny", PYTHONPATH=PATHS) as theirs:
        with Engine("dask", cluster=address, root=project.root) as engine:
            made = plain.run(project, block=1, engine=engine)
        assert plain.hashes(project, made) == expected
        assert theirs.poll() is None


def test_a_cluster_that_goes_away_ends_the_stage(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In one message, at once, and without a traceback; nothing waits for ever."""
    with (
        scheduler(PYTHONPATH=PATHS) as (found, process),
        worker(found, PYTHONPATH=PATHS),
        Engine("dask", cluster=found) as engine,
    ):
        done = engine.run(dying.slow, range(100))
        next(done)
        process.kill()
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


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """Return the address of an object store, for all tests of this file."""
    with object_store.started() as found:
        yield found


def test_workers_that_see_an_object_store_alone_give_the_same_bytes(
    address: str, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project's folder is empty to them; nothing stays on its way at the end."""
    object_store.point_at(monkeypatch, store)
    here = plain.write(tmp_path / "here", tiny=plain.FEW)
    expected = plain.hashes(here, plain.run(here))
    bucket = object_store.bucket(store)
    project = object_store.project(tmp_path / "there", tiny=plain.FEW)
    stated = Runtime(engine="dask", cluster=address, artifacts=object_store.ROOT)
    apart = {"before": without(project.root), "HOME": "/", "PYTHONPATH": PATHS}
    monkeypatch.setattr(execution, "compute_block", dying.always)  # but at workers
    lines: list[str] = []
    with (
        worker(address, **apart) as first,
        worker(address, **apart) as second,
        choose_engine(project, stated, None, None, tell=lines.append) as engine,
    ):
        made = plain.run(project, block=1, engine=engine)
        assert plain.hashes(project, made) == expected
        results = engine.run(dying.slow, range(8))
        next(results)
        first.kill()
        assert len(list(results)) == 7
        second.kill()
        monkeypatch.setattr(engines, "EMPTY_SECONDS", 1)
        with pytest.raises(UserError, match="has had no worker for a while"):
            list(engine.run(dying.slow, range(2)))
    assert len(lines) == 2
    assert all("left the cluster" in line for line in lines)
    assert not [name for name in object_store.files(bucket) if ".run-" in name]


def test_a_worker_without_rights_to_the_store_is_named(
    address: str, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is computed; and what a worker says that finds another store."""
    object_store.point_at(monkeypatch, store)
    object_store.bucket(store)
    at_store = {"cluster": address, "root": tmp_path, "store": object_store.ROOT}
    with (
        object_store.answering(403) as forbidden,
        worker(address, PYTHONPATH=PATHS, AWS_ENDPOINT_URL=forbidden),
        Engine("dask", **at_store) as engine,
        pytest.raises(UserError, match=r"tcp://127.*: s3://.*no right to read it"),
    ):
        assert engine.transit
    transit = Transit.below(object_store.ROOT)
    assert "names another store" in transit.problem()
    transit.open()
    assert transit.problem() == ""
    transit.close()


def test_a_worker_that_joins_with_other_versions_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was not there when the others were asked."""
    monkeypatch.setattr(engines, "worker_address", lambda: "tcp://late:1")
    call = WorkerCall(dying.who, versions=(("numpy", "0.9"),))
    with pytest.raises(UserError, match=r"^tcp://late:1 joined .* other versions"):
        call(0, 1)


def test_what_nobody_published_never_leaves_the_machine(tmp_path: Path) -> None:
    """Whatever reads or makes clients' tables stays, and so do releases and files."""
    project = production.write(tmp_path / "real")
    made = production.plan(project)
    lines = list(describe_places(made.steps, "the cluster tcp://there"))
    assert [line.partition(",")[0] for line in lines[:2]] == ["ingest", "privatize"]
    assert lines[2] == "train, aggregate: at the cluster tcp://there"
    study = plain.plan(plain.write(tmp_path / "study", tiny=plain.FEW))
    assert not any(map(why_here, study.steps))
    assert all(why_here(replace(step, unpublished=True)) for step in study.steps)


def test_a_table_that_is_not_public_is_never_copied(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for it: its manifest says what it is."""
    object_store.point_at(monkeypatch, store)
    project = production.write(tmp_path)
    (ingest, *_) = production.run(project).steps
    with pytest.raises(InternalError, match="is not public"):
        Transit.below(object_store.ROOT).share_input(artifact(project, *ingest.id))
