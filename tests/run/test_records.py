"""Records of runs: one file, whose order is no clock's; older JSON files are read."""

import errno
import json
import multiprocessing
import os
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from curvote.base.durable import DurableFile
from curvote.base.errors import UserError
from curvote.flows.serving.retention import collect_garbage
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.history import project_status, run_state
from curvote.pipeline.run.results import mean_scores
from curvote.pipeline.store import records
from curvote.pipeline.store.garbage import RetentionLimits
from tests import plain
from tests.processes import in_child
from tests.tracked_run import make_record

HOUR = timedelta(hours=1)
CUT = ("aggregate.cutoff=0.5",)


def saved(project: Project, name: str, **changes: Any) -> records.RunRecord:
    """Save a completed run of the pipeline `demo` unless told otherwise."""
    return records.save_record(project, make_record(name, **changes))


def answers(project: Project) -> dict[str, Any]:
    """Return everything that is asked of the records."""
    return {
        "pipelines": records.pipeline_names(project),
        "order": records.run_ids(project),
        "newest": records.run_ids(project, "demo", last=3),
        "completed": records.run_ids(project, "demo", "completed", 1),
        "unlogged": [run.id for run in records.unlogged_runs(project)],
        "logged": records.last_logged_pipeline(project),
        "running": records.unfinished_runs(project),
        "keys": records.latest_keys(project, "demo"),
        "released": records.released_steps(project),
    }


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with five runs, ids against their order, one released."""
    made = Project(tmp_path)
    saved(made, "e", mlflow_run="1")
    saved(made, "d", status="failed")
    saved(made, "c", status="running", owner="pid:1@2")
    saved(made, "b", pipeline="other")
    saved(made, "a", config={"mode": "production", "protocol": "mrma"})
    return made


def test_order_is_that_of_saving(project: Project) -> None:
    """Whatever ids, which hold the clock's time, say; saving again changes nothing."""
    assert records.run_ids(project) == ["e", "d", "c", "b", "a"]
    first = records.load_record(project, "e")
    assert first
    records.save_record(project, first)
    assert records.run_ids(project) == ["e", "d", "c", "b", "a"]
    assert [r.sequence for r in records.load_records(project)] == [1, 2, 3, 4, 5]


def as_json(project: Project, name: str, **changes: Any) -> Path:
    """Write a record as earlier versions did."""
    path = project.state / "runs" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(vars(make_record(name)) | {"format": 2} | changes))
    return path


def test_records_of_earlier_versions_are_taken_over(project: Project) -> None:
    """Without a number they come first, by id; those that came later have theirs.

    The files stay as they are, and nothing but what is saved anew counts from then on.
    """
    paths = [as_json(project, name) for name in ("20260102-1", "20260101-1")]
    texts = [path.read_text() for path in paths]
    assert records.run_ids(project)[:3] == ["20260101-1", "20260102-1", "e"]
    old = records.load_record(project, "20260101-1")
    assert old == make_record("20260101-1")
    records.save_record(project, replace(old, mlflow_run="9"))
    as_json(project, "z", sequence=6, status="failed")
    assert records.run_ids(project)[-2:] == ["a", "z"]
    assert saved(project, "0").sequence == 7
    assert records.load_record(project, "20260101-1").mlflow_run == "9"  # type: ignore[union-attr]
    assert [path.read_text() for path in paths] == texts


def test_a_folder_of_json_that_cannot_be_written_is_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full or read-only disk: earlier and present records, and nothing is stored."""
    before = answers(project)
    as_json(project, "20260101-1", pipeline="past", steps=[])

    def read_only(self: Any, db: sqlite3.Connection, path: Path) -> None:
        DurableFile._prepare_connection(self, db, path)
        db.execute("PRAGMA query_only = ON")

    monkeypatch.setattr(records.RecordsFile, "_prepare_connection", read_only)
    assert records.run_ids(project, "past") == ["20260101-1"]
    assert answers(project)["keys"] == before["keys"]
    with pytest.raises(UserError, match="it cannot be written"):
        saved(project, "0")
    records.records_path(project).unlink()

    def refuses(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(records.RecordsFile, "_create", refuses)
    assert records.run_ids(project) == ["20260101-1"]


@pytest.mark.parametrize("text", ["{", "[]", '{"id": "torn"}'])
def test_an_unreadable_json_file_is_passed_over(project: Project, text: str) -> None:
    """The latest one that can be read takes its place; `doctor` names it."""
    as_json(project, "torn", sequence=9).write_text(text)
    assert records.completed_run(project, "demo").id == "a"


@pytest.mark.parametrize("damage", ["torn", "noise", "empty", "folder"])
def test_damaged_records_are_refused_and_left_alone(
    project: Project, damage: str
) -> None:
    """Nobody else knows what was released; no run begins a new file beside them."""
    path = records.records_path(project)
    whole = path.read_bytes()
    broken = {"torn": whole[:6000], "noise": b"no database" * 1000, "empty": b""}
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(broken[damage])
    for ask in (answers, lambda project: saved(project, "0")):
        with pytest.raises(UserError, match="the record of runs"):
            ask(project)
    assert path.is_dir() or path.read_bytes() == broken[damage]


def test_a_writer_that_is_killed_leaves_the_state_before(project: Project) -> None:
    """All of a run or nothing, at whichever moment; the next one has its number."""
    for moment in range(4):

        def dies(moment: int = moment) -> None:
            enter = records._enter

            def killed(db: sqlite3.Connection, record: records.RunRecord) -> None:
                if moment > 1:
                    enter(db, record)
                if moment % 2:
                    db.execute("PRAGMA cache_spill = 1")
                    db.execute("PRAGMA cache_size = 1")
                    db.execute("UPDATE runs SET why = hex(zeroblob(9000))")
                os.kill(os.getpid(), signal.SIGKILL)

            records._enter = killed
            saved(project, "0")

        before = answers(project)
        os.waitpid(in_child(dies), 0)
        assert answers(project) == before
    assert saved(project, "0").sequence == 6


def test_records_of_a_newer_version_are_refused(project: Project) -> None:
    """Their order, or what they released, may stand where nothing here looks."""
    as_json(project, "new", format=99)
    with pytest.raises(UserError, match="newer curvote wrote this record"):
        records.load_record(project, "e")
    with closing(sqlite3.connect(records.records_path(project))) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match=r"a newer curvote wrote it \(format 99"):
        records.load_record(project, "e")


def test_questions_read_no_more_records_with_more_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Latest run, latest keys, what is released: none reads them all."""
    for number in range(40):
        saved(project, f"x{number:02}", mlflow_run="1")
    read: list[str] = []
    load = records._records

    def counted(*about: Any) -> Any:
        found = load(*about)
        read.extend(record.id for record in found)
        return found

    monkeypatch.setattr(records, "_records", counted)
    answers(project)
    assert records.completed_run(project, "demo").id == "x39"
    records.record_killed(project, lambda _: True)
    assert read == ["b", "a", "x39"]  # those are not logged yet


@pytest.mark.parametrize("jump", [-3 * HOUR, 24 * 365 * HOUR], ids=["back", "on"])
def test_the_clock_does_not_order_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    """Three hours back or a year forward between two runs: the later is the latest."""
    project = plain.write(tmp_path, tiny=plain.FEW)
    ids = []
    for shift, cutoff in ((0 * HOUR, 0.7), (jump, 0.6), (jump, 0.5)):
        _at(monkeypatch, datetime(2026, 1, 5, 6, tzinfo=UTC) + shift)
        ids.append(plain.run(project, "tiny", f"aggregate.cutoff={cutoff}").id)
    assert records.run_ids(project) == ids
    latest = records.completed_run(project, "tiny")
    assert latest.id == ids[-1]
    assert project_status(project, content=False)[0]["run"] == ids[-1]
    anew = plain.plan(project, "tiny", "aggregate.cutoff=0.9").steps_to_run()
    assert anew[0].reason == "parameter aggregate.cutoff 0.5 -> 0.9"
    collect_garbage(project, limits=RetentionLimits())
    assert mean_scores(project, latest)
    assert {s.action for s in plain.plan(project, "tiny", *CUT).steps} == {"reuse"}


def _at(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    """Set the clock of the records."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return moment.astimezone(tz)

    monkeypatch.setattr(records, "datetime", Clock)


def _save_some(root: Path, name: str) -> None:
    for number in range(8):
        saved(Project(root), f"{name}{number}")


def test_processes_at_once_get_each_their_own_number(tmp_path: Path) -> None:
    """No number twice, none left out, and the index knows every run."""
    spawn = multiprocessing.get_context("fork")
    every = [spawn.Process(target=_save_some, args=(tmp_path, n)) for n in "abc"]
    for process in every:
        process.start()
    for process in every:
        process.join()
    found = records.load_records(Project(tmp_path))
    assert sorted(record.sequence for record in found) == list(range(1, 25))


def test_a_run_of_another_container_is_under_way(project: Project) -> None:
    """Its process has no name here; the lock that it holds is gone with it.

    A child of its own holds it, as one process may not see its own lock.
    """
    run = saved(project, "z", status="running", owner="pid:4194305@1")
    assert run_state(project, run, bool) == "running"
    reading, writing = os.pipe()

    def holds() -> None:
        records.hold_run_lock(project, run.id)
        os.write(writing, b".")
        time.sleep(60)

    child = in_child(holds)
    os.read(reading, 1)
    assert run_state(project, run, no_name) == "running"
    records.record_killed(project, no_name)
    assert run in records.load_records(project)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert run_state(project, run, no_name) == "killed"
    records.record_killed(project, no_name)
    assert run not in records.load_records(project)


def no_name(_: str) -> bool:
    """Say that nobody here is called so."""
    return False
