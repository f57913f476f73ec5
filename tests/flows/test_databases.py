"""Prefect's and MLflow's databases destroyed, absent or newer: results stand."""

import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.cli import doctor
from curvote.flows import machine
from curvote.flows.environment import prepare_environment
from curvote.flows.machine import (
    MLFLOW,
    PREFECT,
    Database,
    describe_silence,
    explained_errors,
    stop_cause,
)
from curvote.flows.server.launch import ServerLaunch
from curvote.flows.tracking import log as tracking
from curvote.flows.tracking import store
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import results
from curvote.pipeline.store import records
from curvote.tasks.context import RedactedError, redaction
from tests import plain
from tests.mlflow_runs import a_classifier
from tests.prepared import put_databases
from tests.processes import run_command, until
from tests.tracked_run import make_record, make_rows

pytestmark = pytest.mark.usefixtures("own_variables")
GARBAGE = b"no database any more" * 5000


def command(project: Project, *words: str) -> Any:
    """Give a command in a process of its own, which has no database open."""
    return run_command(*words, "--project", str(project.root))


def repair(project: Project) -> list[str]:
    """Log what is missing, in a process of its own; return what it says."""
    code = "import sys; from pathlib import Path"
    code += "; from curvote.flows.tracking import log"
    code += "; from curvote.pipeline.config.project import Project"
    code += "; log.log_missing_runs(Project(Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(project.root)],
        capture_output=True,
        text=True,
        timeout=170,
        check=True,
    )
    return done.stderr.splitlines()


def newer(path: Path) -> None:
    """Let a later version have been here."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS alembic_version (version_num TEXT)")
        db.execute("DELETE FROM alembic_version")
        db.execute("INSERT INTO alembic_version VALUES ('ffffffffffff')")


def destroy(path: Path) -> None:
    """Overwrite a file in place, under whoever has it open."""
    with path.open("r+b") as stream:
        stream.write(GARBAGE)


def elsewhere(_path: Path) -> None:
    """Name a server that is not there."""
    os.environ["MLFLOW_TRACKING_URI"] = "postgresql://me:hidden@127.0.0.1:9/mlflow"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.write_bytes(GARBAGE), "`curvote doctor --fix`"),
        (newer, "install the MLflow that wrote it"),
        (elsewhere, "MLflow's 127.0.0.1:9 does not answer"),
    ],
    ids=["destroyed", "newer", "unreachable"],
)
def test_mlflow_that_cannot_be_used_is_a_warning(
    done: Project,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], object],
    told: str,
) -> None:
    """One line at once, where MLflow itself would try for minutes; no secret in it."""
    damage(done.state / "mlflow.db")
    tracking.log_missing_runs(done)
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("warning: MLflow could not log (MLflow's")
    assert told in said
    assert "hidden" not in said
    assert records.load_records(done)[0].mlflow_run is None


@pytest.mark.faults
def test_a_run_that_mlflow_missed_is_logged_once_it_can_be(done: Project) -> None:
    """By the next one, whatever had kept it away."""
    newer(done.state / "mlflow.db")
    assert len(repair(done)) == 1
    (done.state / "mlflow.db").unlink()
    assert repair(done) == []
    assert all(record.mlflow_run for record in records.load_records(done))


@pytest.mark.faults
def test_an_absent_database_of_mlflow_is_made_and_filled_again(done: Project) -> None:
    """What it had is logged again by `doctor --fix`, from the records."""
    repair(done)
    (first,) = records.load_records(done)
    (done.state / "mlflow.db").unlink()
    assert doctor.runs_missing_in_mlflow(done) == [first.id]
    told = command(done, "doctor", "--fix")
    assert "1 of 1 runs logged again in MLflow" in told.stderr
    assert not doctor.runs_missing_in_mlflow(done)
    assert command(done, "doctor").returncode == 0


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("postgresql://me:hidden@db.example/x", ("db.example", 5432)),
        ("mysql+pymysql://me:hidden@db.example/x", ("db.example", 3306)),
        ("http://db.example/api", ("db.example", 80)),
        ("https://db.example:8443/api", ("db.example", 8443)),
        ("postgresql:///x?host=/var/run/postgresql", None),
        ("sqlite:////somewhere/mlflow.db", None),
        ("databricks", None),
        ("https://far.example/api", None),
    ],
)
def test_only_what_listens_somewhere_is_asked(
    monkeypatch: pytest.MonkeyPatch, url: str, asked: tuple[str, int] | None
) -> None:
    """At its own port; a socket in a folder, a name and a proxy tell nothing."""
    places: list[object] = []

    def refuse(where: object, _seconds: float) -> None:
        places.append(where)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "db.example")
    said = describe_silence(url)
    assert places == ([] if asked is None else [asked])
    assert said == (
        "{}:{} does not answer (Connection refused)".format(*asked) if asked else None
    )


def test_a_server_that_is_busy_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one that refuses has gone."""

    def wait(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.create_connection", wait)
    assert describe_silence("http://127.0.0.1:9/api", patient=True) is None
    assert describe_silence("http://127.0.0.1:9/api") is not None


def test_a_small_disk_is_no_cause_before_a_server_has_ended(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients' tables may have a disk of a few MiB, with room for what they need."""
    monkeypatch.setattr(machine, "full_folder", lambda *_: project.clients)
    launch = ServerLaunch(project.state / "prefect", "secret")
    assert launch.database_problem() is None
    assert "no space left" in launch.end_reason()


def falls_over() -> None:
    """Do what Prefect does when it cannot note down an error."""
    try:
        raise UserError("what was meant")
    except UserError:
        raise RuntimeError("500 Internal Server Error")  # noqa: B904


def test_prefect_falling_over_a_message_of_ours_hides_nothing(tmp_path: Path) -> None:
    """The first UserError is what is told; what we know nothing of stays as it is."""
    with (
        pytest.raises(UserError, match="what was meant"),
        explained_errors(Project(tmp_path)),
    ):
        falls_over()
    for hidden in (nullcontext(), redaction()):
        with (
            pytest.raises((ZeroDivisionError, RedactedError)) as raised,
            explained_errors(Project(tmp_path)),
            hidden,
        ):
            _ = 1 / 0
    copy = pickle.loads(pickle.dumps(raised.value))  # as Prefect keeps it
    assert (str(copy), vars(copy)) == ("ZeroDivisionError", {})


@pytest.mark.faults
def test_prefects_database_destroyed_under_a_run_is_said(tmp_path: Path) -> None:
    """Or it completes, as Prefect had read what it needed; `doctor --fix` mends it."""
    project = plain.write(tmp_path, tiny=plain.TINY | {"replicates": 2})
    words = [
        sys.executable,
        "-m",
        "curvote.cli",
        "run",
        "tiny",
        "--project",
        str(tmp_path),
    ]
    running = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert until(lambda: bool(records.load_records(project)), 100)
    destroy(project.state / "prefect" / "prefect.db")
    _, told = running.communicate(timeout=170)
    said = [line for line in told.splitlines() if not line.startswith("[")]
    assert "Traceback" not in told
    assert len(said) <= 5
    assert running.returncode in {0, 2}
    if running.returncode:
        assert any("curvote doctor --fix" in line for line in said)
    doctor.repair_project(project)
    again = command(project, "run", "tiny")
    assert again.returncode == 0, again.stderr
    assert records.completed_run(project, "tiny").status == "completed"


def half_made(path: Path) -> None:
    """Leave what a kill between two migrations leaves: tables without a revision."""
    from mlflow.store.tracking.dbmodels.initial_models import Base
    from sqlalchemy import create_engine

    path.unlink(missing_ok=True)
    engine = create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    engine.dispose()


def stuck(path: Path) -> None:
    """Leave the tables of a migration that the revision does not know of."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")


@pytest.mark.parametrize(
    ("damage", "mended"),
    [(half_made, "brought to the newest version"), (stuck, "set aside as")],
)
def test_a_half_made_database_of_mlflow_is_no_end(
    project: Project,
    databases: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], object],
    mended: str,
) -> None:
    """MLflow never opens it again; it is named, and `doctor --fix` makes it usable.

    What it held is logged again, and so is the next run.
    """
    monkeypatch.setattr(results, "mean_scores", lambda *_: make_rows())
    monkeypatch.setattr(results, "final_model", lambda *_: a_classifier())
    prepare_environment(put_databases(databases, project).root)
    records.save_record(project, make_record("first", mlflow_run="in the damaged one"))
    path = project.state / "mlflow.db"
    damage(path)
    assert machine.MLFLOW.problem(project) == machine.HALF_MADE
    (found,) = (
        each for each in machine.check_databases(project) if "MLflow" in each.check
    )
    assert "`curvote doctor --fix`" in str(found.fix)
    (told, *_, again) = doctor.repair_project(project)
    assert mended in told
    assert again == "1 of 1 runs logged again in MLflow"
    assert machine.MLFLOW.problem(project) is None
    records.save_record(project, make_record("second"))
    tracking.log_missing_runs(project)
    assert "warning" not in capsys.readouterr().err
    logged = {record.mlflow_run for record in records.load_records(project)}
    assert len(logged - {None, "in the damaged one"}) == 2


def test_the_database_of_mlflow_appears_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill while it is made leaves none, and the next try makes it."""
    project = Project(tmp_path)
    path = tmp_path / "data" / "state" / "mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{path}")

    def cut_off(making: Path) -> None:
        half_made(making)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store, "migrate_database", cut_off)
        with pytest.raises(KeyboardInterrupt):
            store.make_new_database(project)
    assert not path.exists()
    path.touch()  # sqlite leaves an empty file where it was only looked for
    store.make_new_database(project)
    assert machine.MLFLOW.problem(project) is None
    assert path.stat().st_size > 100_000


def test_a_hot_journal_is_played_back(tmp_path: Path) -> None:
    """After a power cut in a transaction the database is as before it, and usable."""
    project = Project(tmp_path)
    live, path = tmp_path / "live.db", machine.MLFLOW.path(project)
    assert path is not None
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(live, isolation_level=None)) as db:
        db.execute("CREATE TABLE runs (x TEXT)")
        db.executemany("INSERT INTO runs VALUES (?)", [("a" * 1000,)] * 500)
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        db.execute("UPDATE runs SET x = ?", ("b" * 1000,))
        shutil.copy(live, path)
        shutil.copy(f"{live}-journal", f"{path}-journal")
        db.execute("ROLLBACK")
    read_only = f"{path.as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(read_only, uri=True)) as db,
        pytest.raises(sqlite3.OperationalError),
    ):
        db.execute("SELECT * FROM runs").fetchall()
    assert machine.MLFLOW.problem(project) == machine.HALF_MADE  # no revision
    with closing(sqlite3.connect(read_only, uri=True)) as db:
        assert db.execute("SELECT DISTINCT substr(x, 1, 1) FROM runs").fetchall() == [
            ("a",)
        ]


def test_a_database_that_is_being_written_is_no_fault(
    tmp_path: Path, databases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever holds its lock can read it; `doctor` waits and says nothing."""

    def impatient(path: Path) -> sqlite3.Connection:  # by itself it waits 5 seconds
        return sqlite3.connect(f"{path.as_uri()}?mode=ro", timeout=0.1, uri=True)

    monkeypatch.setattr(machine, "open_read_only", impatient)
    project = put_databases(databases, Project(tmp_path))
    path = project.state / "mlflow.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        assert machine.MLFLOW.problem(project) is None


def test_a_folder_whose_name_ends_addresses_is_refused(tmp_path: Path) -> None:
    """Databases would land outside of the project."""
    with pytest.raises(UserError, match="Rename the folder"):
        prepare_environment(tmp_path / "what?")


@pytest.mark.parametrize("database", [PREFECT, MLFLOW])
def test_a_refused_password_is_said_by_its_variable(
    project: Project, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    """Whose it is among three, and never the address, which holds it."""
    url = "postgresql+psycopg://me:hidden@db.example/x"
    monkeypatch.setenv(database.variable, url)
    inner = OSError('connection failed: FATAL: password authentication failed for "me"')
    said = stop_cause(project, inner, database)
    assert str(said) == (
        f"the database that {database.variable} names refuses the user or the password"
        " in it."
    )
    assert stop_cause(project, OSError("something else"), database) is None
    monkeypatch.delenv(database.variable)
    assert stop_cause(project, inner, database) is None  # a file asks for no password
