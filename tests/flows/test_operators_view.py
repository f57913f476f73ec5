"""What an operator sees of scheduled runs that fail: the reason, everywhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from curvote.errors import UserError
from curvote.flows.environment import SERVED, process_tag
from curvote.flows.output import lines
from curvote.flows.serving import scheduled
from curvote.run import history
from curvote.run.config.schema import Schedule
from curvote.run.config.yaml_lines import as_yaml, parsed
from curvote.run.project import Project
from curvote.run.status import overview
from tests import plain

GONE = "people.csv is not there"


def project_of(root: Path, **schedule: float) -> Project:
    """Return a served project, whose notices go to a file."""
    listening = [sys.executable, "-c", "import sys; open('told', 'a').write(input())"]
    every = plain.TINY | {"schedule": {"interval": 3600, **schedule}}
    project = plain.write(root, tiny=every)
    values = parsed(project.pipelines_file.read_text())
    notify = {"on": ["failed", "recovered"], "command": listening}
    text = as_yaml(values | {"runtime": {"notify": notify}})
    project.pipelines_file.write_text(text)
    return project


def failing(monkeypatch: pytest.MonkeyPatch, *whys: str) -> None:
    """Let the next runs fail so, and others complete without doing anything."""
    left = list(whys)

    def perform(pipeline: str, project: str, _asked: object) -> str:
        place = Project(Path(project))
        if left:
            raise UserError(left.pop(0))
        made = history._new(place, pipeline, process_tag())
        return history.finish(place, history.save(place, made), "completed").id

    monkeypatch.setattr(scheduled, "perform", perform)


def test_what_could_not_be_planned_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason; `status` shows it, and a later success takes its place."""
    project = project_of(tmp_path)
    failing(monkeypatch, GONE)
    with pytest.raises(UserError, match="people"):
        scheduled._recorded(project, "tiny")
    (row,) = overview(project, content=False)
    assert (row["status"], row["why"]) == ("failed", GONE)
    scheduled._recorded(project, "tiny")
    (row,) = overview(project, content=False)
    assert (row["status"], row["why"]) == ("completed", "")
    assert [r.status for r in history.load_all(project)] == ["failed", "completed"]


@pytest.mark.parametrize("failures", range(4))
def test_a_schedule_tries_again_as_often_as_it_says(
    failures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice here: two failures are survived, each on record; the third is told."""
    project = project_of(tmp_path)
    failing(monkeypatch, *[GONE] * failures)
    schedule = Schedule(interval=3600, retries=2, retry_delay=0)

    def once() -> str:
        return scheduled._recorded(project, "tiny")

    if failures > 2:
        with pytest.raises(UserError, match="people"):
            scheduled._tried(schedule, once)
    else:
        assert scheduled._tried(schedule, once)
    tried = [r.status for r in history.load_all(project)]
    assert tried == (["failed"] * failures + ["completed"])[:3]


def test_the_first_success_after_a_failure_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`recovered`, once; and no word of why it had failed."""
    project = project_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SERVED, str(tmp_path))
    history.refused(project, "tiny", GONE, process_tag())
    for _ in range(2):
        before = history.latest(project, "tiny")
        failing(monkeypatch)
        scheduled._recorded(project, "tiny")
        scheduled._tell_recovered(project, "tiny", before)
    told = json.loads((tmp_path / "told").read_text())
    assert (told["event"], told["pipeline"]) == ("recovered", "tiny")
    assert "people" not in str(told)


def test_what_is_said_is_kept_with_its_time(tmp_path: Path) -> None:
    """For its owner only; a log that is full or gone stops nobody."""
    log = lines.Kept(tmp_path / "serve.log")
    made = lines.line("tiny: failed", "error")
    log.keep(made)
    kept = tmp_path / "serve.log"
    assert kept.read_text() == f"{made['time']} error   tiny: failed\n"
    assert kept.stat().st_mode & 0o77 == 0
    log.stream.close()
    log.stream = kept.open()  # nothing can be written there
    log.keep(made)
    log.close()
