"""Whether serve does its work, as somebody outside of it is told."""

import json
import subprocess
import sys
import time
from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from curvote.base.durable import private_folder
from curvote.base.errors import UserError
from curvote.cli.app import app
from curvote.flows.environment import process_tag
from curvote.flows.serving import health
from curvote.flows.serving import schedules as firing
from curvote.flows.serving.health import (
    STALE_SECONDS,
    Heartbeat,
    check_health,
    describe_overdue,
)
from curvote.flows.serving.schedules import DueFirings, firing_times
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from tests import plain

ROOT = Path(__file__).parents[2]
HOUR = timedelta(hours=1)


def beat(project: Project, *, served: timedelta, **changes: object) -> Heartbeat:
    """Leave what a `serve` leaves that has served ``tiny`` every hour for a time.

    The latest firing was half an hour ago.
    """
    now = datetime.now(UTC) - HOUR / 2
    hours = [(now + number * HOUR).isoformat() for number in range(1, 6)]
    gone = [now - number * HOUR for number in range(min(4, int(served / HOUR + 0.5)))]
    made = Heartbeat(
        process=process_tag(),
        url="http://127.0.0.1:9/api",
        started=(now - served).isoformat(timespec="seconds"),
        beat=time.monotonic(),
        next={"tiny": hours},
        due={"tiny": [at.isoformat() for at in gone[::-1]]},
    )
    found = replace(made, **changes)
    private_folder(project.state)
    found.write(project)
    return found


def statuses(project: Project, max_age: timedelta | None = None) -> dict[str, str]:
    """Return what is said of each thing that was looked at."""
    return {row["check"]: row["status"] for row in check_health(project, max_age)}


def test_nothing_is_well_where_serve_is_not_alive(project: Project) -> None:
    """Never started, gone, or hanging: one line, which names the way out."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    dead = process_tag(gone.pid)
    gone.wait()
    assert statuses(project) == {"serve": "failed"}
    for changes in ({"process": dead}, {"beat": time.monotonic() - STALE_SECONDS - 1}):
        beat(project, served=HOUR, **changes)
        (row,) = check_health(project)
        assert row["status"] == "failed"
        assert "curvote serve" in row["fix"]


def test_a_destroyed_file_is_no_heartbeat(project: Project) -> None:
    """Half of it, or another document, says that serve is not there."""
    beat(project, served=HOUR)
    path = project.state / "serve.json"
    whole = path.read_text()
    for text in (whole[: len(whole) // 2], "[]", '{"process": "x"}'):
        path.write_text(text)
        assert health.last_heartbeat(project) is None
        assert statuses(project) == {"serve": "failed"}


def test_schedules_that_do_not_fire_are_no_health(project: Project) -> None:
    """Serve lives and says itself why nothing fires."""
    beat(project, served=HOUR, trouble="Prefect's server does not answer")
    serve, schedules, _ = check_health(project)
    assert serve["status"] == "ok"
    assert schedules["status"] == "failed"
    assert schedules["found"] == "Prefect's server does not answer"


def test_a_success_that_is_too_old_is_named(done: Project) -> None:
    """By the age that is given, or by two firings; serve's start counts before it."""
    (record,) = records.load_records(done)
    beat(done, served=9 * HOUR)
    assert statuses(done)["tiny"] == "ok"
    for hours, expected in ((1.4, "ok"), (1.6, "failed")):
        ended = datetime.now(UTC) - hours * HOUR
        records.save_record(done, replace(record, finished=ended.isoformat()))
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
        "import sys; from curvote.cli.app import app\n"
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
    ("words", "said"),
    [
        (["health", "--max-age=2"], "2h or 7d"),
        (["health", "--max-age=h"], "90m"),
        (["health", "--max-age=-3h"], "90m"),
        (["health", "--max-age", "0m"], "90m"),
        (["status", "--watch", "--json"], "prints once"),
    ],
)
def test_a_wrong_question_is_refused(
    project: Project, words: list[str], said: str
) -> None:
    """An age is written as a span, and what is watched by people is no document."""
    refused = CliRunner().invoke(app, [*words, "--project", str(project.root)])
    assert isinstance(refused.exception, UserError)
    assert said in str(refused.exception)


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


# ------------------------------------------------------------------------- a whole year
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = {
    "nights": {"cron": "0 22-23,0-5 * * *", "timezone": "Europe/Berlin"},
    "weekdays": {"cron": "0 8-17 * * 1-5", "timezone": "America/New_York"},
    "weekends": {"cron": "30 6 * * 6,0"},
    "two hours a week": {"cron": "*/30 9-10 * * 2", "timezone": "Asia/Tokyo"},
    "month ends": {"cron": "0 3 L * *"},
    "six hours": {"interval": 21_600.0},
}
RUNS_FOR = timedelta(minutes=5)


@cache
def the_year(name: str) -> list[datetime]:
    """Return all firings of a year."""
    schedule = YEARS[name]
    found: list[datetime] = []
    while more := firing_times(
        schedule, after=found[-1] if found else BEGUN, until=BEGUN + timedelta(days=365)
    ):
        found += more
    return found


@pytest.mark.parametrize("name", YEARS)
def test_a_year_of_firings_gives_no_false_alarm(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rests at night, over weekends, most of the week; a fault is told of in time.

    In time: before the second firing after the first that failed is over. One failure
    that the next firing makes good is none; nor is the rest after it.
    """
    schedule, due = YEARS[name], DueFirings()
    every = the_year(name)
    due.observe({name: schedule}, BEGUN)
    monkeypatch.setattr(  # the same, from the list: ten thousand looks in no time
        firing,
        "firing_times",
        lambda _, after, until: every[
            bisect_right(every, after) : bisect_right(every, until)
        ],
    )
    n, success = len(every), None
    broken = {n // 4: 1, 5 * n // 12: 3, 3 * n // 4: 2}  # from which firing, how many
    failed = {first + i for first, count in broken.items() for i in range(count)}
    alarms: list[datetime] = []
    for i, at in enumerate(every[:-1]):
        pause = every[i + 1] - at
        for after in (timedelta(seconds=1), RUNS_FOR, pause / 2, pause * 0.99):
            now = at + after
            due.observe({name: schedule}, now)
            if after >= RUNS_FOR and i not in failed:
                success = at + RUNS_FOR
            tried = i in failed and after >= RUNS_FOR
            latest = [datetime.fromisoformat(date) for date in due.to_json()[name]]
            if describe_overdue(latest, success, now, tried=tried):
                alarms.append(now)
    for first, count in broken.items():
        begun, ended = every[first], every[first + count] + RUNS_FOR
        mine = [now for now in alarms if begun <= now <= ended]
        assert bool(mine) == (count > 1)
        assert not mine or mine[0] < every[first + 2]
        alarms = [now for now in alarms if now not in mine]
    assert alarms == []


@pytest.mark.parametrize("name", YEARS)
def test_what_never_succeeded_is_told_of_at_once(name: str) -> None:
    """Failed at its first firing, however long the next one is away."""
    schedule, due = YEARS[name], DueFirings()
    first, second, *_ = the_year(name)
    due.observe({name: schedule}, BEGUN)
    for now, expected in ((first, False), (first + (second - first) * 0.99, True)):
        due.observe({name: schedule}, now)
        latest = [datetime.fromisoformat(date) for date in due.to_json()[name]]
        assert bool(describe_overdue(latest, None, now, tried=True)) is expected
    assert not describe_overdue([first], None, second, tried=False)


def test_what_could_not_fire_is_nobodys_fault() -> None:
    """A schedule that is new or changed, or a machine that slept, counts from then."""
    due, hourly = DueFirings(), {"interval": 3600.0}
    day = timedelta(days=1)
    due.observe({"a": hourly}, BEGUN)
    due.observe({"a": hourly}, BEGUN + day)
    assert len(due.to_json()["a"]) == 4
    due.observe({"a": hourly, "b": hourly}, BEGUN + 2 * day)
    assert due.to_json()["b"] == []
    due.observe({"a": {"interval": 1800.0}}, BEGUN + 3 * day)
    assert due.to_json() == {"a": []}
    due.observe({"a": {"interval": 1800.0}}, BEGUN + 4 * day)
    due.observe({"a": {"interval": 1800.0}}, BEGUN + 3 * day)  # the clock was set back
    assert due.to_json() == {"a": []}
    due.observe({"a": {"interval": 1800.0}}, BEGUN + 4 * day)
    due.clear()
    due.observe({"a": {"interval": 1800.0}}, BEGUN + 5 * day)
    assert due.to_json() == {"a": []}


def test_a_restart_of_serve_begins_nothing_anew() -> None:
    """What came due before counts on; what went by meanwhile, and another form, not."""
    due, day, hourly = DueFirings(), timedelta(days=1), {"interval": 3600.0}
    due.observe({"a": hourly, "b": hourly}, BEGUN)
    due.observe({"a": hourly, "b": hourly}, BEGUN + day)
    later, known = DueFirings(), due.to_json()
    later.resume({"a": hourly, "b": hourly}, known, BEGUN + 2 * day)
    later.observe({"a": hourly, "b": {"interval": 60.0}}, BEGUN + 2 * day)
    assert later.to_json() == {"a": known["a"], "b": []}


def test_a_run_under_way_is_given_its_time(done: Project) -> None:
    """One that takes longer than a period is not late while it runs."""
    (record,) = records.load_records(done)
    beat(done, served=9 * HOUR)
    ended = (datetime.now(UTC) - 1.6 * HOUR).isoformat()
    records.save_record(done, replace(record, finished=ended))
    assert statuses(done)["tiny"] == "failed"
    begun = (datetime.now(UTC) - 1.5 * HOUR).isoformat()
    records.save_record(
        done,
        replace(
            record,
            id="later",
            sequence=0,
            started=begun,
            finished=None,
            status="running",
        ),
    )
    assert statuses(done)["tiny"] == "ok"
