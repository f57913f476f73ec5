"""Where a watch over a deployed model is seen: MLflow, Prefect, Prometheus, notices."""

import json
import math
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from curvote.base.entropy import SeededEntropy
from curvote.chain import lookup
from curvote.chain.reputation import Reading, Reputation
from curvote.cli.commands.runs import scores
from curvote.flows import artifacts, chain, environment
from curvote.flows.recorded_run import RunRequest, run_recorded
from curvote.flows.serving import scheduled_run
from curvote.flows.serving.metrics import ProjectMetrics
from curvote.flows.tracking.cells import main_number
from curvote.flows.tracking.log import log_missing_runs
from curvote.flows.tracking.store import connect
from curvote.intake.box import Intake
from curvote.messages.answer import answer_outcome
from curvote.messages.message import Outcome, parse_messages
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.release import windows
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.run.results import run_notes
from curvote.pipeline.store.records import RunRecord
from curvote.wire import signing
from curvote.wire.envelope import Invitation, seal_message
from tests.mlflow_runs import runs_of
from tests.prepared import put_databases

NAME, PEOPLE = "still-right", 60
TELL = [sys.executable, "-c", "import sys; open('told', 'a').write(sys.stdin.read())"]
PAIR = ["models:/phonemes@champion", "models:/phonemes@challenger"]
RIGHT: dict[str, Any] = {"reference": 0.9, "margin": 0.02, "model": PAIR[0]}
GOOD, BAD = [*[("yes",)] * 14, ("no",)], [("no",), ("yes",)]


def run_steps(project: Project, plan: Any, *_: object) -> None:
    """Run all steps of a plan here."""
    for step in plan.steps_to_run():
        execute_step(project, step)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which the test stands, and runs need no Prefect."""
    monkeypatch.setattr(chain, "_run_steps", run_steps)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def registry(root: Path, databases: Path, own_variables: None) -> Any:
    """Return a client of the project's MLflow with two versions of a model."""
    put_databases(databases, Project(root))
    client = connect(Project(root))
    client.create_registered_model("phonemes")
    add_version(client, "champion")
    add_version(client, "challenger")
    return client


def add_version(client: Any, alias: str) -> None:
    """Register another version of the model under an alias."""
    model = client.create_logged_model("0", "phonemes").model_id
    made = client.create_model_version("phonemes", f"models:/{model}")
    client.set_registered_model_alias("phonemes", alias, made.version)


def write(root: Path, terms: dict[str, Any], **more: Any) -> Project:
    """Write a project that asks few people in each window, with little noise."""
    watch = {"window": "7d", "rounds": 5, "people": PEOPLE} | terms
    pipeline = {"mode": "production", "protocol": "monitor", "monitor": watch}
    pipeline |= {"epsilon": 8, "intake": {"fold": 20}} | more
    every = {"pipelines": {NAME: pipeline}, "runtime": {"notify": {"command": TELL}}}
    (root / "pipelines.yaml").write_text(as_yaml(every))
    return Project(root)


def run(project: Project, *, new_release: bool = False) -> RunRecord:
    """Run as `curvote run` does, without a server."""
    configured = PipelinesFile(project).configure_pipeline(NAME)
    plan = make_plan(project, configured, fetch=True, new_release=new_release)
    return run_recorded(project, plan, RunRequest(), chain._run_steps)


def answer(project: Project, window: int, said: list[tuple[str, ...]]) -> None:
    """Let everybody invited in a window answer; what models said is right by yes."""
    stem = project.published(NAME) / f"answer-{window}"
    signed = signing.open_signed(Path(f"{stem}.task.json").read_bytes())
    task, sent = lookup.read_task(signed.document["task"]), []
    lines = Path(f"{stem}.invitations.jsonl").read_text().splitlines()
    for k, invitation in enumerate(map(Invitation.from_json, map(json.loads, lines))):
        outcome = Outcome(said[k % len(said)], "yes", None, None)
        noise = SeededEntropy(1000 * window + k)
        payload = answer_outcome(task, outcome, invitation.about, noise)
        sent.append(seal_message(invitation, payload))
    with Intake(project.intake) as intake:
        assert not any(intake.take_batch(sent, parse_messages))


def test_a_figure_is_shown_with_its_interval() -> None:
    """Shares in percent, numbers as they are; what is not known is no metric."""
    looks = [Reading(1, 50, math.nan, 0.0, 1.0), Reading(2, 1200, 0.89, 0.753, 1.0)]
    share = Reputation("accuracy", True, looks, looks[1:], ["drop"], {"drop": 1200})
    assert share.title == "accuracy 89.0 % (75.3 to 100.0), alarm: drop"
    assert share.texts()["alarm"] == "drop at 1,200 answers"
    assert [p for p in share.points() if p[0] == "accuracy"] == [("accuracy", 0.89, 2)]
    number = Reputation("error", False, looks[1:], [], [], {})
    assert number.title == "error 0.89 (0.753 to 1)"


def test_a_watch_is_seen_wherever_its_runs_are(
    root: Path, registry: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """An alarm is told once; else all show figure, interval, windows and alarm."""
    project, runs = write(root, RIGHT), []
    for window, said in enumerate((GOOD, BAD, BAD), 1):
        run(project, new_release=window > 1)
        answer(project, window, said)
        runs.append(run(project))
    _, dropped, newest = runs
    notice = json.loads((root / "told").read_text())
    assert (notice["alarm"], notice["run"]) == ("drop", dropped.id)
    assert log_missing_runs(project)
    (logged,) = runs_of(f"tags.`curvote.run` = '{newest.id}'", NAME)
    title, run_id = logged.info.run_name, logged.info.run_id
    looks, alone = (
        [m.value for m in registry.get_metric_history(run_id, prefix + "accuracy")]
        for prefix in ("", "window/")
    )
    assert alone[2] < looks[2] < looks[1] < looks[0] == alone[0]
    assert main_number(project, newest) == f"{title}, by noised messages"
    first, *_, last = artifacts._results(project, newest, None)
    assert first == f"**{title}**"
    assert "| 3 | 60 |" in last
    every = (metric.samples for metric in ProjectMetrics(project).collect())
    found = {(s.name, *s.labels.values()): s.value for part in every for s in part}
    assert found["curvote_model_value", NAME, "accuracy"] == looks[2]
    assert found["curvote_model_low", NAME, "accuracy"] < looks[2]
    assert found["curvote_model_alarm", NAME, "drop"] == 1
    capsys.readouterr()
    scores(NAME, as_json=True)
    (document,) = json.loads(capsys.readouterr().out)
    assert document["accuracy"] == looks[2]
    assert [window["accuracy"] for window in document["windows"]] == alone
    # The version has the figure of the newest run, until its alias is another's.
    version = registry.get_model_version("phonemes", "1")
    assert version.tags[f"{NAME}.run"] == newest.id
    (linked,) = registry.get_run(run_id).inputs.model_inputs
    assert version.source == f"models:/{linked.model_id}"
    registry.set_registered_model_alias("phonemes", "champion", "2")
    later = run(project)
    assert log_missing_runs(project)
    assert not registry.get_model_version("phonemes", "2").tags
    (logged,) = runs_of(f"tags.`curvote.run` = '{later.id}'", NAME)
    assert logged.data.tags["versions_now"] == "models:/phonemes/2"


def test_the_better_of_two_is_made_champion_by_hand(root: Path, registry: Any) -> None:
    """By the command of the notes, unless the alias names a version nobody judged."""
    project = write(root, {"question": "versus", "model": PAIR, "people": 200})
    run(project)
    answer(project, 1, [*[("no", "yes")] * 9, ("yes", "no")])
    code = run_notes(project, run(project))[-1].split('"')[1]
    assert log_missing_runs(project)
    assert "champion" not in registry.get_model_version("phonemes", "2").aliases
    exec(code)
    assert "champion" in registry.get_model_version("phonemes", "2").aliases
    add_version(registry, "challenger")
    with pytest.raises(AssertionError):
        exec(code)
    registry.delete_registered_model("phonemes")
    run(project)
    assert log_missing_runs(project)  # a name that is gone hinders nothing


@pytest.mark.parametrize("model", [PAIR[0], "models:/a/3", "mine", "models:/a'/3"])
def test_a_command_is_given_where_one_is_due(model: str) -> None:
    """For two names of the registry, of which the better one is not the champion."""
    looks = [Reading(1, 9, 0.5, 0.4, 0.6)]
    pair = Reputation("lead", True, looks, [], [], {}, [model, PAIR[1]], model)
    assert bool(pair.promotion) == (model == "models:/a/3")


def test_a_schedule_goes_on_over_windows(
    root: Path, registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each firing counts what came; one after the end of a window opens the next."""
    terms = RIGHT | {"model": "Anna's model"}
    project = write(root, terms, schedule={"interval": 3600})
    monkeypatch.setenv(environment.SERVED_VARIABLE, str(root))
    monkeypatch.setattr(scheduled_run, "perform_run", lambda *_: run(project).id)
    in_eight_days = {"now": lambda tz=None: datetime.now(tz) + timedelta(8)}
    late, published = type("Late", (datetime,), in_eight_days), project.published(NAME)
    for window in (1, 2, 3):
        scheduled_run._run_with_retries(project, NAME)
        assert len([*published.glob("*.task.json")]) == window
        answer(project, window, GOOD)
        assert scheduled_run._run_with_retries(project, NAME).status == "completed"
        with monkeypatch.context() as clock:
            clock.setattr(windows, "datetime", late)
            scheduled_run._run_with_retries(project, NAME)
        assert len([*published.glob("*.task.json")]) == window + 1
        assert log_missing_runs(project)  # whatever the model is called
