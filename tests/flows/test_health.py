"""Whether serve does its work, as somebody outside of it is told."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from curvote.durable import owner_folder
from curvote.flows.cli import app
from curvote.flows.environment import process_tag
from curvote.flows.health import health
from curvote.flows.serving import heartbeat
from curvote.flows.serving.heartbeat import STALE, Heartbeat
from curvote.run import history
from curvote.run.project import Project
from tests import plain

ROOT = Path(__file__).parents[2]
HOUR = timedelta(hours=1)


def beat(project: Project, *, served: timedelta, **changes: object) -> Heartbeat:
    """Leave what a `serve` leaves that has served ``tiny`` every hour for a time."""
    now = datetime.now(UTC)
    hours = [(now + number * HOUR).isoformat() for number in range(1, 6)]
    made = Heartbeat(
        process=process_tag(),
        url="http://127.0.0.1:9/api",
        started=(now - served).isoformat(timespec="seconds"),
        beat=time.monotonic(),
        next={"tiny": hours},
    )
    found = replace(made, **changes)
    owner_folder(project.state)
    found.write(project)
    return found


def statuses(project: Project, max_age: timedelta | None = None) -> dict[str, str]:
    """Return what is said of each thing that was looked at."""
    return {row["check"]: row["status"] for row in health(project, max_age)}


def test_nothing_is_well_where_serve_is_not_alive(project: Project) -> None:
    """Never started, gone, or hanging: one line, which names the way out."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    dead = process_tag(gone.pid)
    gone.wait()
    assert statuses(project) == {"serve": "failed"}
    for changes in ({"process": dead}, {"beat": time.monotonic() - STALE - 1}):
        beat(project, served=HOUR, **changes)
        (row,) = health(project)
        assert row["status"] == "failed"
        assert "curvote serve" in row["fix"]


def test_a_destroyed_file_is_no_heartbeat(project: Project) -> None:
    """Half of it, or another document, says that serve is not there."""
    beat(project, served=HOUR)
    path = project.state / "serve.json"
    whole = path.read_text()
    for text in (whole[: len(whole) // 2], "[]", '{"process": "x"}'):
        path.write_text(text)
        assert heartbeat.last(project) is None
        assert statuses(project) == {"serve": "failed"}


def test_schedules_that_do_not_fire_are_no_health(project: Project) -> None:
    """Serve lives and says itself why nothing fires."""
    beat(project, served=HOUR, trouble="Prefect's server does not answer")
    serve, schedules, _ = health(project)
    assert serve["status"] == "ok"
    assert schedules["status"] == "failed"
    assert schedules["found"] == "Prefect's server does not answer"


def test_a_success_that_is_too_old_is_named(done: Project) -> None:
    """By the age that is given, or by two periods; serve's start counts before it."""
    (record,) = history.load_all(done)
    beat(done, served=9 * HOUR)
    assert statuses(done)["tiny"] == "ok"
    for hours, expected in ((1.9, "ok"), (3.0, "failed")):
        ended = datetime.now(UTC) - hours * HOUR
        history.save(done, replace(record, finished=ended.isoformat()))
        assert statuses(done)["tiny"] == expected
        assert statuses(done, 5 * HOUR)["tiny"] == "ok"
        assert statuses(done, 1 * HOUR)["tiny"] == "failed"


def test_a_pipeline_that_never_succeeded_is_given_its_time(project: Project) -> None:
    """Two of its periods from the start of serve."""
    for served, expected in ((HOUR, "ok"), (3 * HOUR, "failed")):
        beat(project, served=served)
        assert statuses(project)["tiny"] == expected


def test_the_command_exits_1_and_imports_no_prefect(project: Project) -> None:
    """A monitor asks every minute: an answer has to be cheap."""
    script = (
        "import sys; from curvote.flows.cli import app\n"
        "try: app()\n"
        "except SystemExit as end: code = end.code\n"
        "heavy = {'prefect', 'mlflow', 'scipy.stats'} & {*sys.modules}\n"
        "print(heavy, code, file=sys.stderr)"
    )
    asked = [sys.executable, "-c", script, "health", "--json"]
    done = subprocess.run(
        [*asked, "--project", str(project.root)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stderr.split() == ["set()", "1"]
    assert [row["status"] for row in json.loads(done.stdout)] == ["failed"]


@pytest.mark.parametrize(
    ("given", "said"), [("2", "2h or 7d"), ("h", "90m"), ("-3h", "90m")]
)
def test_an_age_is_written_as_a_span(project: Project, given: str, said: str) -> None:
    """The error shows how."""
    root = str(project.root)
    asked = ["health", f"--max-age={given}", "--project", root]
    assert said in str(CliRunner().invoke(app, asked).exception)


def test_status_is_watched_by_people(project: Project) -> None:
    """--json is one document, so the two do not go together."""
    asked = ["status", "--watch", "--json", "--project", str(project.root)]
    assert "one document" in str(CliRunner().invoke(app, asked).exception)


def test_firings_are_shown(tmp_path: Path) -> None:
    """Five for each pipeline that has a schedule, as text or JSON; nothing starts."""
    daily = {"cron": "30 6 * * *", "timezone": "Europe/London", "catch_up": "latest"}
    places = {"a": {"interval": 20}, "b": daily}
    made = {name: plain.TINY | {"schedule": each} for name, each in places.items()}
    root = plain.write(tmp_path, **made, never=plain.TINY).root
    asked = ["serve", "--check", "--project", str(root)]
    rows = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert [row["pipeline"] for row in rows] == ["a", "b"]
    assert rows[1]["catch_up"] == "latest"
    for row, least in zip(rows, (20, 23 * 3600), strict=True):
        dates = [datetime.fromisoformat(date) for date in row["next"]]
        assert len(dates) == 5
        assert dates == sorted(dates)
        assert dates[0] > datetime.now(UTC)
        assert (dates[1] - dates[0]).total_seconds() >= least
    text = CliRunner().invoke(app, asked).stdout
    assert text.count("\n") == 12
    assert "b: at '30 6 * * *' (Europe/London)" in text
    assert not (root / "data" / "state" / "serve.json").exists()


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ({"cron": "every day"}, "Invalid cron string"),
        ({"cron": "0 6 * * 1", "timezone": "Mars/Olympus"}, "timezone"),
        ({"cron": "0 0 30 2 *"}, "failed to find"),
    ],
)
def test_a_schedule_that_never_fires_is_refused(
    tmp_path: Path, schedule: dict[str, str], said: str
) -> None:
    """The pipeline is named; nothing starts."""
    root = plain.write(tmp_path, odd=plain.TINY | {"schedule": schedule}).root
    done = CliRunner().invoke(app, ["serve", "--check", "--project", str(root)])
    assert said in str(done.exception)
    assert str(done.exception).startswith("odd: ")
