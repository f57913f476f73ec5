"""What an operator sees of scheduled runs that fail: the reason, everywhere."""

import json
import os
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest

from curvote.base.errors import UserError
from curvote.base.table_file import Violations
from curvote.data.lookup import resolve_source
from curvote.flows import lines
from curvote.flows.environment import RUNNER_VARIABLE, SERVED_VARIABLE, process_tag
from curvote.flows.recorded_run import failure_reason
from curvote.flows.serving import scheduled_run
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import Schedule
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from curvote.pipeline.run.history import project_status
from curvote.pipeline.store import records
from curvote.tasks.context import redaction
from tests import plain

GONE = "people.csv is not there"


def project_of(root: Path, **schedule: float) -> Project:
    """Return a served project, whose notices go to a file."""
    listening = [sys.executable, "-c", "import sys; open('told', 'a').write(input())"]
    every = plain.TINY | {"schedule": {"interval": 3600, **schedule}}
    project = plain.write(root, tiny=every)
    values = parse_value(project.pipelines_file.read_text())
    notify = {"on": ["failed", "recovered"], "command": listening}
    text = as_yaml(values | {"runtime": {"notify": notify}})
    project.pipelines_file.write_text(text)
    return project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a served project, in whose folder the test stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SERVED_VARIABLE, str(tmp_path))
    monkeypatch.setenv(RUNNER_VARIABLE, str(os.getpid()))
    return project_of(tmp_path)


def failing(monkeypatch: pytest.MonkeyPatch, *whys: str) -> None:
    """Let the next runs fail so, and others complete without doing anything."""
    left = list(whys)

    def perform(pipeline: str, project: str, _asked: object) -> str:
        place = Project(Path(project))
        if left:
            raise UserError(left.pop(0))
        made = records._new_record(place, pipeline, process_tag())
        return records.record_end(
            place, records.save_record(place, made), "completed"
        ).id

    monkeypatch.setattr(scheduled_run, "perform_run", perform)


def test_what_could_not_be_planned_is_on_record(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason; `status` shows it, and a later success takes its place."""
    failing(monkeypatch, GONE)
    with pytest.raises(UserError, match="people"):
        scheduled_run._perform_once(project, "tiny")
    (row,) = project_status(project, content=False)
    assert (row["status"], row["why"]) == ("failed", GONE)
    scheduled_run._perform_once(project, "tiny")
    (row,) = project_status(project, content=False)
    assert (row["status"], row["why"]) == ("completed", "")
    assert [r.status for r in records.load_records(project)] == ["failed", "completed"]


@pytest.mark.parametrize("failures", range(4))
def test_a_schedule_tries_again_as_often_as_it_says(
    failures: int, tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice here: two failures are survived, each on record; the third is told."""
    failing(monkeypatch, *[GONE] * failures)
    schedule = Schedule(interval=3600, retries=2, retry_delay=0)

    def once() -> str:
        return scheduled_run._perform_once(project, "tiny")

    if failures > 2:
        with pytest.raises(UserError, match="people"):
            scheduled_run._try_repeatedly(schedule, once)
    else:
        assert scheduled_run._try_repeatedly(schedule, once)
    tried = [r.status for r in records.load_records(project)]
    assert tried == (["failed"] * failures + ["completed"])[:3]


def test_the_first_success_after_a_failure_is_told(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`recovered`, once, though a run waited meanwhile; no word of the failure."""
    failed = records.record_refusal(project, "tiny", GONE, process_tag())
    records.record_end(project, records._new_record(project, "tiny", ""), "blocked")
    for _ in range(2):
        failing(monkeypatch)
        record = scheduled_run._run_with_retries(project, "tiny")
        assert scheduled_run._describe_end(record) == f"run {record.id}: completed"
    told = json.loads((tmp_path / "told").read_text())
    assert (told["event"], told["pipeline"]) == ("recovered", "tiny")
    assert told["run"] > failed.id
    assert "people" not in str(told)


def test_a_failure_is_told_once_and_in_the_words_of_its_record(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the log, to Prefect and, without the reason, in the notice: the same run."""
    said, logged = deaf(monkeypatch)
    failing(monkeypatch, GONE)
    state = scheduled_run.scheduled.fn("tiny", str(tmp_path))
    record = records.latest_run(project, "tiny")
    assert record
    assert state.message == f"run {record.id}: failed: {GONE}"
    assert said == logged == [state.message]
    told = json.loads((tmp_path / "told").read_text())
    assert (told["event"], told["run"]) == ("failed", record.id)


def test_a_failure_at_every_firing_is_told_ever_more_rarely(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 1, 2, 4, 8 ... in a row, with the count; the first success says how many."""
    project_of(tmp_path, retries=2, retry_delay=0)
    deaf(monkeypatch)
    told = tmp_path / "told"
    counts = []
    for _ in range(20):  # of three tries each
        failing(monkeypatch, *[GONE] * 3)
        scheduled_run.scheduled.fn("tiny", str(tmp_path))
        if told.exists():
            counts.append(json.loads(told.read_text())["count"])
            told.unlink()
    assert counts == [3, 6, 9, 18, 33]
    failing(monkeypatch)
    scheduled_run._run_with_retries(project, "tiny")
    notice = json.loads(told.read_text())
    assert (notice["event"], notice["count"]) == ("recovered", 60)
    told.unlink()
    failing(monkeypatch, *[GONE] * 3)
    scheduled_run.scheduled.fn("tiny", str(tmp_path))
    assert json.loads(told.read_text())["count"] == 3  # begun anew


def test_cells_of_a_private_file_stay_on_its_owners_terminal() -> None:
    """Prefect keeps an error's text, a record its reason: neither quotes the file."""
    wrong = Violations(Path("people.csv"))
    wrong.add("age is not a finite number", 1, ["row 4711 'secret'"])
    with pytest.raises(UserError) as raised, redaction():
        wrong.check()
    kept = "people.csv: age is not a finite number ... (`curvote check` shows the rest)"
    assert str(raised.value) == failure_reason(raised.value) == kept
    (told,) = raised.value.problems
    assert (
        told.message == "people.csv: age is not a finite number (1): row 4711 'secret'."
    )


def test_what_a_bug_says_is_told_to_nobody(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words may hold a client's value: its kind is told, and where it happened."""
    said, logged = deaf(monkeypatch)

    def perform(*_: object) -> str:
        with redaction():
            raise KeyError("client 4711")

    monkeypatch.setattr(scheduled_run, "perform_run", perform)
    state = scheduled_run.scheduled.fn("tiny", str(tmp_path))
    assert str(state.message).endswith(": failed: KeyError")
    assert "in perform" in logged[0]
    told = "".join(
        [str(state.message), *said, *logged, (tmp_path / "told").read_text()]
    )
    told = told.replace('KeyError("client 4711")', "")  # our own line above
    assert "4711" not in told


QUOTED = {
    "a cell": "id,age,ill\np,1,a\nq,4711,b\nr,x4711,b\n",
    "an id": "id,age,ill\n4711,1,a\n4711,2,b\n",
    "a label": "id,age,ill\np,1,a\nq,2,b\nr,2,4711\n",
    "no header": "4711,1,a\nq,2,b\n",
    "semicolons": "4711;1;a\nq;2;b\n",
}


@pytest.mark.parametrize("text", QUOTED.values(), ids=QUOTED)
def test_what_a_message_quotes_of_a_file_is_kept_nowhere(
    text: str, tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only who sits at a terminal reads it: no record, no log, no page, no notice."""
    table = {"name": "table", "path": "people.csv", "id": "id", "label": "ill"}
    table |= {"positive": "a", "features": ["age"], "bounds": {"age": [0, 5]}}
    (tmp_path / "people.csv").write_text(text)
    said, logged = deaf(monkeypatch)
    caught: list[UserError] = []

    def perform(*_: object) -> str:
        try:
            with redaction(), PipelinesFile(project).errors_located("tiny"):
                resolve_source(table)[0].examined(
                    resolve_source(table)[1], {"path": tmp_path / "people.csv"}
                )
        except UserError as error:
            caught.append(error)
            raise
        raise AssertionError

    monkeypatch.setattr(scheduled_run, "perform_run", perform)
    state = scheduled_run.scheduled.fn("tiny", str(tmp_path))
    record = records.latest_run(project, "tiny")
    assert record
    kept = [str(caught[0]), *traceback.format_exception(caught[0]), record.why]
    told = (tmp_path / "told").read_text()
    assert "4711" not in "".join([*kept, str(state.message), *said, *logged, told])
    assert "people.csv" in record.why
    assert "4711" in "".join(problem.message for problem in caught[0].problems)


def test_who_may_start_a_run_puts_no_words_into_a_notice(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that no pipeline has is refused, and told to nobody outside."""
    deaf(monkeypatch)
    words = "tiny: your password is over, see http://127.0.0.1/"
    state = scheduled_run.scheduled.fn(words, str(tmp_path))
    assert state.is_failed()
    given = {"pipeline": words, "project": str(tmp_path)}
    ended = SimpleNamespace(parameters=given), SimpleNamespace(message="SIGKILL")
    scheduled_run._on_crash(None, *ended)
    assert not (tmp_path / "told").exists()
    assert not records.load_records(project)


@pytest.mark.parametrize("begun", [True, False])
def test_a_killed_run_is_named(
    begun: bool, tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it had begun; an earlier one that was killed is not told again."""
    said, _ = deaf(monkeypatch)
    gone = records.save_record(project, records._new_record(project, "tiny", "pid:0@0"))
    if not begun:
        records.record_end(project, gone, "killed")
    given = {"pipeline": "tiny", "project": str(tmp_path)}
    run, state = SimpleNamespace(parameters=given), SimpleNamespace(message="SIGKILL")
    scheduled_run._on_crash(None, run, state)
    assert said[0].startswith(f"run {gone.id}: killed" if begun else "killed before")
    told = json.loads((tmp_path / "told").read_text())
    assert told.get("run") == (gone.id if begun else None)


def deaf(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Return what lines are said from now on, and what Prefect's logger is given."""
    said: list[str] = []
    logged: list[str] = []
    monkeypatch.setattr(
        scheduled_run.lines, "write_line", lambda text, *_, **__: said.append(text)
    )
    logger = SimpleNamespace(error=lambda form, *given: logged.append(form % given))
    monkeypatch.setattr(scheduled_run, "get_run_logger", lambda: logger)
    monkeypatch.setattr(scheduled_run.logging, "disable", lambda: None)
    return said, logged


def test_what_is_said_is_kept_with_its_time(tmp_path: Path) -> None:
    """For its owner only; a log that is full or gone stops nobody."""
    log = lines.LineLog(tmp_path / "serve.log")
    made = lines.make_line("tiny: failed\ntwice", "error")
    log.write_entry(made)
    kept = tmp_path / "serve.log"
    stamp = f"{made['time']} error   "
    assert kept.read_text() == f"{stamp}tiny: failed\n{stamp}twice\n"
    assert kept.stat().st_mode & 0o77 == 0
    log.stream.close()
    log.stream = kept.open()  # nothing can be written there
    log.write_entry(made)
    log.close()
