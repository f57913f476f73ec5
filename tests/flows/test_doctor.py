"""`curvote doctor`: what is wrong is named with its way out, and mended if harmless."""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from curvote.base.privacy import Budget
from curvote.cli import doctor as checks
from curvote.cli import doctor as mending
from curvote.cli.app import app
from curvote.flows import machine
from curvote.flows.environment import prepare_environment, process_tag
from curvote.flows.machine import MLFLOW, PREFECT
from curvote.flows.tracking import store
from curvote.ledger.book import Ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import results
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import MANIFEST
from tests import plain
from tests.flows.test_databases import newer
from tests.mlflow_runs import a_classifier
from tests.prepared import put_databases
from tests.tracked_run import make_record, make_rows

pytestmark = pytest.mark.usefixtures("own_variables")
NOBODY = "pid:999999999@1"


def doctor(project: Project, *words: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Return the exit code and what is not in order, by check."""
    given = ["doctor", "--json", "--project", str(project.root), *words]
    done = CliRunner().invoke(app, given)
    found = json.loads(done.stdout)
    assert all(set(row) == {"check", "status", "found", "fix"} for row in found)
    assert all(bool(row["fix"]) == (row["status"] != "ok") for row in found)
    return done.exit_code, {r["check"]: r for r in found if r["status"] != "ok"}


def destroy(path: Path) -> None:
    """Overwrite what makes a file a database."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"no database any more" * 500)


def alter_a_table(project: Project) -> None:
    """Change one byte of a table, and neither its size nor its date."""
    path = next(project.artifacts.glob("train/*/*.parquet"))
    was, content = path.stat(), bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def tear_a_manifest(project: Project) -> None:
    """Cut a manifest in half, of a stage that MLflow is told nothing of."""
    path = next(project.clients.glob(f"report/*/{MANIFEST}"))
    path.write_text(path.read_text()[:40])


def install_a_trap(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a version of fastapi in front that breaks Prefect."""
    folder = project.root / "site" / "fastapi-0.165.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Name: fastapi\nVersion: 0.165.0\n")
    monkeypatch.syspath_prepend(folder.parent)


def reserve(project: Project) -> None:
    """Begin a release that never ends."""
    with Ledger(project.ledger) as ledger:
        ledger.set_cap("another", Budget(1.0))
        facts: dict[str, str | int | float] = {"base": "x", "number": 1}
        ledger.reserve("r1", ["a"], Budget(0.5), population="another", facts=facts)


def test_a_sound_project_is_all_ok(done: Project) -> None:
    """Exit 0; what does not apply (ledger, intake, witness) is left out."""
    code, wrong = doctor(done)
    assert (code, wrong) == (0, {})
    named = {each.check for each in checks.run_checks(done)}
    assert {"versions", "space", "file system", "artifacts", "clock"} <= named
    assert not named & {"ledger", "intake", "witness", "reservations"}


def damage(done: Project, monkeypatch: pytest.MonkeyPatch) -> str:
    """Do eight damages to a project that has run once; return the stale run's id."""
    (made,) = records.load_records(done)
    records.save_record(done, replace(made, mlflow_run="logged in what is destroyed"))
    prepare_environment(done.root)
    destroy(done.state / "mlflow.db")
    destroy(done.state / "prefect" / "prefect.db")
    stale = make_record("20200101-000000-000000", status="running", owner=NOBODY)
    records.save_record(done, stale)
    later = "2999-01-01T00:00:00+00:00"
    records.save_record(done, make_record("19990101-000000-000000", finished=later))
    alter_a_table(done)
    tear_a_manifest(done)
    install_a_trap(done, monkeypatch)
    (done.state / "runs").mkdir()
    (done.state / "runs" / "torn.json").write_text('{"id": ')
    return stale.id


def test_eight_damages_are_named_and_what_loses_nothing_is_mended(
    done: Project, databases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the next run computes what was altered, and only the rest is left."""
    new = databases / "data" / "state" / "mlflow.db"
    monkeypatch.setattr(store, "migrate_database", partial(shutil.copy, new))
    monkeypatch.setattr(results, "mean_scores", lambda *_: make_rows())
    monkeypatch.setattr(results, "final_model", lambda *_: a_classifier())
    (made,) = records.load_records(done)
    stale = damage(done, monkeypatch)

    code, wrong = doctor(done)
    assert code == 1
    assert set(wrong) == {
        *("MLflow database", "Prefect database", "stale runs", "clock"),
        *("artifacts", "versions", "run records"),
    }
    assert "fastapi 0.165.0" in wrong["versions"]["found"]
    assert "constraints.txt" in wrong["versions"]["fix"]
    assert "set the clock" in wrong["clock"]["fix"]
    assert "torn.json" in wrong["run records"]["found"]
    told = [e for e in checks.run_checks(done) if e.check == "artifacts"]
    assert [e.status for e in told] == ["failed", "failed", "ok"]
    assert "`curvote run tiny`" in told[1].fix
    assert "`curvote run tiny --force train`" in told[0].fix

    code, wrong = doctor(done, "--fix")
    assert set(wrong) == {"clock", "artifacts", "versions", "run records"}
    kept = sorted(p.name for p in done.state.rglob("*.aside-0"))
    assert kept == ["mlflow.db.aside-0", "prefect.db.aside-0"]
    assert (done.state / kept[0]).read_bytes().startswith(b"no database any more")
    after = {r.id: r for r in records.load_records(done)}
    assert after[stale].status == "killed"
    assert after[made.id].mlflow_run not in (None, "logged in what is destroyed")

    monkeypatch.undo()
    (done.state / "runs" / "torn.json").unlink()
    records.delete_records(done, ["19990101-000000-000000"])
    assert [*done.artifacts.glob("train/.altered-*")]  # by --fix, before a run
    again = plain.run(done)
    actions = {(step["stage"], step["action"]) for step in again.steps}
    assert {("train", "run"), ("privatize", "reuse")} <= actions
    assert doctor(done) == (0, {})


def test_a_database_of_a_newer_version_is_no_destroyed_one(done: Project) -> None:
    """It is left where it is; the way out is the version that wrote it."""
    for each in (PREFECT, MLFLOW):
        path = each.path(done)
        assert path is not None
        newer(path)
    _, wrong = doctor(done)
    assert set(wrong) == {"MLflow database", "Prefect database"}
    assert "newer MLflow" in wrong["MLflow database"]["found"]
    _, after = doctor(done, "--fix")
    assert after == wrong


def test_sound_databases_are_known(done: Project, databases: Path) -> None:
    """Those of Prefect and MLflow as installed."""
    put_databases(databases, done)
    assert MLFLOW.problem(done) is PREFECT.problem(done) is None
    assert doctor(done) == (0, {})


@pytest.mark.parametrize("variable", [MLFLOW.variable, PREFECT.variable])
def test_a_database_elsewhere_is_asked_and_its_secret_not_told(
    done: Project, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Nothing listens there: failed, and no word of the password."""
    monkeypatch.setenv(variable, "postgresql://me:hidden@127.0.0.1:9/curvote")
    _, wrong = doctor(done)
    (found,) = wrong.values()
    assert "127.0.0.1:9 does not answer" in found["found"]
    assert "hidden" not in json.dumps(wrong)


def test_fix_refuses_beside_a_running_run(done: Project) -> None:
    """Exit 2; nothing was set aside, and no other run ended."""
    destroy(done.state / "mlflow.db")
    stale = make_record("20200101-000000-000000", status="running", owner=NOBODY)
    records.save_record(done, stale)
    mine = make_record("20200102-000000-000000", status="running", owner=process_tag())
    records.save_record(done, mine)
    before = sorted(p.name for p in done.state.rglob("*"))
    with pytest.raises(Exception, match=f"run {mine.id} is going on") as refused:
        mending.repair_project(done)
    assert len(str(refused.value).splitlines()) == 1
    assert sorted(p.name for p in done.state.rglob("*")) == before
    assert {r.id: r.status for r in records.load_records(done)}[stale.id] == "running"


def test_accounts_that_disagree_are_named(town: Project) -> None:
    """An older ledger, a reservation, a witness out of reach, a task without intake."""
    assert not set(doctor(town)[1]) - {"clock"}
    reserve(town)
    published = town.published("town") / "report-1.task.json"
    published.parent.mkdir(parents=True)
    published.write_text("{}")
    text = town.pipelines_file.read_text()
    witness = town.root.parent / "gone" / "witness"
    changed = text.replace("ledger:\n", f"ledger:\n      witness: {witness}\n")
    town.pipelines_file.write_text(changed)
    _, wrong = doctor(town)
    assert {"reservations", "witness", "intake"} <= set(wrong)
    assert str(witness) in wrong["witness"]["found"]
    town.ledger.unlink()
    _, wrong = doctor(town)
    assert "curvote ledger restore" in wrong["ledger"]["fix"]


def _no_locks(_file: Any, _how: int) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def _no_sync(_handle: int) -> None:
    raise OSError(errno.EINVAL, "Invalid argument")


@pytest.mark.parametrize(
    ("where", "name", "broken", "said"),
    [
        (fcntl, "flock", _no_locks, "No locks available"),
        (fcntl, "flock", lambda *_: None, "two processes can hold one lock"),
        (os, "fsync", _no_sync, "Invalid argument"),
    ],
)
def test_a_file_system_is_really_tried(
    done: Project,
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    name: str,
    broken: Callable[..., Any],
    said: str,
) -> None:
    """Without locks or syncs it is no place for a ledger."""
    monkeypatch.setattr(where, name, broken)
    (found,) = machine.check_file_systems(done)
    assert found.status == "failed"
    assert said in found.found
    assert not list(done.root.rglob(".doctor-*"))


def test_a_held_lock_without_a_run_is_named(done: Project) -> None:
    """Whatever holds it would make the next run wait."""
    (done.state / "locks").mkdir(exist_ok=True)
    with (done.state / "locks" / "train-x").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        _, wrong = doctor(done)
    assert "train-x" in wrong["locks"]["found"]
    (done.state / "locks" / "train-x").unlink()
    with (done.state / "mlflow.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # as a scheduled run does when it is over
        assert "locks" not in doctor(done)[1]
    assert doctor(done) == (0, {})


def test_little_room_is_named(done: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bytes as in files."""
    monkeypatch.setattr(machine, "MIN_BYTES", 2**60)
    monkeypatch.setattr(machine, "FEW_INODES", 2**60)
    _, wrong = doctor(done)
    assert wrong["space"]["status"] == "failed"
    assert wrong.get("inodes", {"status": "warning"})["status"] == "warning"
    assert asdict(next(machine.check_space(done)))["fix"] == machine.SPACE_REMEDY


def test_lines_for_people(done: Project) -> None:
    """A line a check, and the way out below it."""
    destroy(done.state / "mlflow.db")
    told = CliRunner().invoke(app, ["doctor", "--project", str(done.root)])
    assert told.exit_code == 1
    at = told.stdout.splitlines()
    (line,) = [i for i, text in enumerate(at) if text.startswith("failed")]
    assert "-> `curvote doctor --fix`" in at[line + 1]


def test_a_faulty_pipeline_is_said_once(project: Project) -> None:
    """By the check of pipelines; that of witnesses looks at the others."""
    text = project.pipelines_file.read_text()
    project.pipelines_file.write_text(f"{text}  bad:\n    source: {{name: nothing}}\n")
    found = [each for each in checks.run_checks(project) if each.status == "failed"]
    assert [each.check for each in found] == ["pipelines"]
