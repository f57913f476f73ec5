"""Records of runs: their order is no clock's, and their index can always be remade."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.flows.serving.retention import collect_garbage
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import mean_scores
from curvote.pipeline.run.run_object import project_status, run_state
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
    """Return everything that is asked of the index."""
    return {
        "pipelines": records.pipeline_names(project),
        "order": records.run_ids(project),
        "newest": records.newest_ids(project, "demo", count=3),
        "completed": records.newest_ids(project, "demo", "completed"),
        "unlogged": records.unlogged_ids(project),
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


def _lost(index: Path) -> None:
    index.unlink()


def _torn(index: Path) -> None:
    index.write_bytes(index.read_bytes()[:6000])


def _noise(index: Path) -> None:
    index.write_bytes(b"no database" * 1000)


def _empty(index: Path) -> None:
    index.write_bytes(b"")


def _of_another_version(index: Path) -> None:
    with sqlite3.connect(index) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()


def _without_a_table(index: Path) -> None:
    with sqlite3.connect(index) as db:
        db.execute("DROP TABLE planned")
    db.close()


def _a_folder(index: Path) -> None:
    index.unlink()
    index.mkdir()


DAMAGES = (_lost, _torn, _noise, _empty, _of_another_version, _without_a_table)


@pytest.mark.parametrize("damage", [*DAMAGES, _a_folder])
def test_a_damaged_index_is_made_anew(
    project: Project, damage: Callable[[Path], None]
) -> None:
    """Every answer is as before, and numbers go on where they were."""
    before = answers(project)
    damage(records.index_path(project))
    assert answers(project) == before
    assert saved(project, "0").sequence == 6


def test_an_older_index_is_brought_up_to_date(project: Project) -> None:
    """A copy from before, a record that vanished, one that was written without it."""
    index = records.index_path(project)
    older = index.read_bytes()
    saved(project, "9", mlflow_run="2")
    (records.records_folder(project) / "d.json").unlink()
    index.write_bytes(older)
    assert records.run_ids(project) == ["e", "c", "b", "a", "9"]
    assert records.last_logged_pipeline(project) == "demo"
    assert saved(project, "8").sequence == 7


def test_a_kill_between_record_and_index_loses_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder changed without the index: the next question finds it out."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(records, "_index_record", killed)
        with pytest.raises(KeyboardInterrupt):
            saved(project, "9")
    assert records.newest_ids(project, "demo") == ["9"]


def test_records_of_earlier_versions_come_first(project: Project) -> None:
    """They have no number: among themselves they keep their order, by id."""
    for name in ("20260102-1", "20260101-1"):
        content = vars(make_record(name)) | {"steps": []}
        del content["sequence"]
        path = records.records_folder(project) / f"{name}.json"
        path.write_text(json.dumps(content))
    assert records.run_ids(project)[:3] == ["20260101-1", "20260102-1", "e"]
    records.drop_index(project)
    assert records.run_ids(project)[:3] == ["20260101-1", "20260102-1", "e"]


def test_a_record_of_a_newer_version_is_refused(project: Project) -> None:
    """Its order, or what it released, may stand where nothing here looks."""
    path = records.records_folder(project) / "e.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(UserError, match="newer curvote wrote this record"):
        records.load_record(project, "e")


def test_a_record_that_became_unreadable_is_passed_over(project: Project) -> None:
    """The latest one that can be read takes its place."""
    (records.records_folder(project) / "a.json").write_text("{")
    assert records.completed_run(project, "demo").id == "e"


def test_questions_read_no_more_records_with_more_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Latest run, latest keys, what is unlogged and released: none reads them all."""
    for number in range(40):
        saved(project, f"x{number:02}", mlflow_run="1")
    read: list[Path] = []
    parsed = records.parse_record

    def counted(path: Path) -> Any:
        read.append(path)
        return parsed(path)

    monkeypatch.setattr(records, "parse_record", counted)
    monkeypatch.setattr(records, "parse_record", counted)
    answers(project)
    assert records.completed_run(project, "demo").id == "x39"
    records.record_killed(project, lambda _: True)
    assert [path.stem for path in read] == ["x39"]


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
