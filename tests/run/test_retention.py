"""What is old goes when it is asked for; what a kept run needs, or a release, stays."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.flows.serving.retention import (
    _max_pause,
    collect_garbage,
    retention_limits,
)
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.store import records
from curvote.pipeline.store.garbage import RetentionLimits, find_garbage
from tests import plain, production
from tests.tracked_run import make_record

DAYS = 86_400
OLD = RetentionLimits(runs=90 * DAYS, artifacts=90 * DAYS)


def aged(path: Path, days: float) -> Path:
    """Write a file that was last changed so long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x" * 100)
    then = time.time() - days * DAYS
    os.utime(path, (then, then))
    return path


def names(project: Project, kind: str, limits: RetentionLimits = OLD) -> set[str]:
    """Return the names of what a pile of this kind holds."""
    (found,) = [pile for pile in find_garbage(project, 1, limits) if pile.kind == kind]
    return {path.name for path in found.paths} | {*found.runs}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose runs are long past; none of them has artifacts."""
    made = plain.write(tmp_path, tiny=plain.FEW)
    for name, status in (
        ("failed", "failed"),
        ("first", "completed"),
        ("waits", "blocked"),
        ("last", "completed"),
        ("runs", "running"),
        ("ended", "killed"),
    ):
        records.save_record(made, make_record(name, status=status))
    return made


def test_old_records_go_but_the_latest_of_each_kind(project: Project) -> None:
    """The latest completed, what runs, and what `status` shows stay for ever."""
    assert names(project, "records") == {"failed", "first", "waits"}
    before = records.completed_run(project, "demo")
    collect_garbage(project, limits=OLD)
    assert records.run_ids(project) == ["last", "runs", "ended"]
    assert records.completed_run(project, "demo") == before
    assert records.save_record(project, make_record("new")).sequence == 7


def test_younger_records_stay(project: Project) -> None:
    """The limit is asked, not the number of runs."""
    young = make_record("young", status="failed", started="2999-01-01T00:00:00+00:00")
    records.save_record(project, young)
    records.save_record(project, make_record("newest"))
    assert "young" not in names(project, "records")


def test_old_logs_and_quarantine_go_but_no_ledger_and_no_intake(
    project: Project,
) -> None:
    """By the time of their last change; what is younger stays."""
    log = aged(project.state / "prefect" / "server.log", 91)
    young = aged(project.state / "serve.log", 89)
    refused = aged(project.quarantine("demo") / "one.json", 91)
    kept = [
        aged(path, 1000)
        for path in (
            project.ledger,
            project.intake,
            project.state / "releases.jsonl",
            project.inbox("demo") / "two.json",
            project.digest_key,
        )
    ]
    collect_garbage(project, limits=OLD)
    assert not log.exists()
    assert not refused.exists()
    assert young.exists()
    assert all(path.exists() for path in kept)


def test_a_page_goes_with_the_run_that_it_shows(project: Project) -> None:
    """One of a kept run stays, whatever its age."""
    for pipeline, run in (("demo", "last"), ("past", "first")):
        folder = project.reports / pipeline
        aged(folder / "report.html", 91)
        stamp = aged(folder / "report.json", 91)
        then = stamp.stat().st_mtime
        stamp.write_text(f'{{"digest": "d", "run": "{run}"}}')
        os.utime(stamp, (then, then))
    assert names(project, "pages") == {"report.html", "report.json"}
    collect_garbage(project, limits=OLD)
    assert (project.reports / "demo" / "report.html").exists()
    assert not (project.reports / "past" / "report.html").exists()


def test_artifacts_stay_as_long_as_a_young_run_needs_them(tmp_path: Path) -> None:
    """Of two runs, the older no longer latest: it is young, so all of it stays."""
    project = plain.write(tmp_path, tiny=plain.FEW)
    plain.run(project)
    plain.run(project, "tiny", "aggregate.cutoff=0.6")
    assert names(project, "artifacts", OLD) == set()
    assert names(project, "artifacts", RetentionLimits()) != set()


def test_a_release_stays_and_so_does_what_tells_of_it(tmp_path: Path) -> None:
    """Its artifacts are frozen; its record is what a lost ledger is held against."""
    project = production.write(tmp_path)
    made = production.run(project)
    record = records.record_start(project, made.configured, made.steps, "pid:1@2")
    long_past = replace(record, status="completed", started="2001-01-01T00:00:00+00:00")
    records.save_record(project, long_past)
    records.save_record(project, replace(long_past, id="later", steps=[], sequence=0))
    frozen = {path.name for path in project.artifacts.glob("privatize/*")}
    told = {run for *_, run in records.released_steps(project)}
    assert frozen
    assert told == {record.id}
    collect_garbage(project, limits=OLD)
    assert {path.name for path in project.artifacts.glob("privatize/*")} == frozen
    assert {run for *_, run in records.released_steps(project)} == told


@pytest.mark.parametrize("schedule", [{"interval": 200_000}, {"cron": "0 6 * * 1"}])
def test_a_limit_that_takes_what_a_schedule_needs_is_refused(
    tmp_path: Path, schedule: dict[str, object]
) -> None:
    """Shorter than the pause between two of its runs, by option or by the file."""
    project = plain.write(tmp_path, tiny=plain.FEW | {"schedule": schedule})
    with pytest.raises(UserError, match=r"--older 36h: tiny runs less often"):
        retention_limits(project, "36h")
    assert retention_limits(project, "90d") == OLD
    text = project.pipelines_file.read_text()
    stated = "runtime: {retention: {artifacts: 2d}}\n"
    project.pipelines_file.write_text(text + stated)
    with pytest.raises(UserError, match=r"runtime\.retention 2d: tiny runs less often"):
        retention_limits(project)


@pytest.mark.parametrize("span", ["0h", "90", "soon", "-1d"])
def test_a_span_that_is_none_is_refused(project: Project, span: str) -> None:
    """Under an hour it would take what is still in use."""
    with pytest.raises(UserError, match=f"--older {span}: "):
        retention_limits(project, span)


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 * * * *", 1 / 24),
        ("30 6 * * *", 1),
        ("*/30 9-10 * * 2", 7 - 1.5 / 24),
        ("0 8-17 * * 1-5", 3 - 9 / 24),
        ("0 3 1 * *", 31),
        ("0 3 1 6 *", 366),
        ("0 0 29 2 *", 4 * 365 + 1),
    ],
)
def test_a_schedule_is_known_by_its_longest_pause(cron: str, days: float) -> None:
    """However rarely that comes: in the next sixty firings it may not."""
    assert _max_pause({"cron": cron}) == pytest.approx(days * 86_400)
    (berlin,) = {_max_pause({"cron": cron, "timezone": "Europe/Berlin"})}
    assert berlin - days * 86_400 in {0, 3600}  # clocks are put back


def test_spans_beyond_all_dates_are_refused(project: Project) -> None:
    """They were tracebacks."""
    with pytest.raises(UserError, match="over a hundred years"):
        retention_limits(project, "99999999w")
    text = as_yaml({"pipelines": {"t": plain.TINY | {"schedule": {"interval": 1e300}}}})
    project.pipelines_file.write_text(text)
    with pytest.raises(UserError, match=r"schedule\.interval"):
        PipelinesFile(project).schedules()
