"""Deployments of scheduled pipelines: prefect.yaml, and the form of a custom run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from prefect.utilities.callables import parameter_schema
from typer.testing import CliRunner

from curvote.cli.app import app
from curvote.flows import artifacts
from curvote.flows.chain import chain
from curvote.flows.deployments import Deployments
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import parse_value
from curvote.pipeline.store import records
from tests import plain, production, town

MONDAYS = {"schedule": {"cron": "0 6 * * 1", "timezone": "Europe/London"}}
HOURLY = {"schedule": {"interval": 3600}}


def deploy(project: Project, *words: str) -> tuple[int, str]:
    """Return exit code and output of `curvote deploy`."""
    done = CliRunner().invoke(app, ["deploy", *words, "--project", str(project.root)])
    said = str(done.exception) if done.exception else ""
    return done.exit_code, f"{done.output}{said}"


def test_a_file_says_what_pipelines_yaml_says(tmp_path: Path) -> None:
    """What a user adds stays; what pipelines.yaml decides is written anew and told."""
    two = {"tiny": plain.FEW | MONDAYS, "real": production.REAL | HOURLY}
    project = plain.write(tmp_path, **two, other=plain.FEW)
    assert deploy(project)[0] == 1  # no work pool is named
    code, said = deploy(project, "--pool", "machines")
    assert (code, "real: in production." in said) == (0, True)
    path = Deployments(project).path
    first, second = parse_value(path.read_text())["deployments"]
    assert first["schedules"] == [MONDAYS["schedule"]]
    assert second["schedules"][0]["interval"] == 3600
    assert first["parameters"] == {"pipeline": "tiny", "project": str(tmp_path)}
    before = path.read_text().replace("machines", "mine  # ours", 1)
    path.write_text(before)
    assert deploy(project, "--check")[0] == 0
    assert path.read_text() == before
    plain.write(tmp_path, tiny=plain.FEW | HOURLY, other=plain.FEW)
    code, said = deploy(project, "--check")
    assert (code, path.read_text()) == (1, before)
    assert "tiny: schedules is [{cron: 0 6 * * 1" in said
    assert "real has no schedule" in said
    assert deploy(project, "--folder", "/srv/project")[0] == 0
    (only,) = parse_value(path.read_text())["deployments"]
    assert only["parameters"]["project"] == "/srv/project"
    assert "mine  # ours" in path.read_text()
    assert deploy(project, "--check")[0] == 0  # workers find it where they did


def test_a_file_that_is_no_list_of_deployments_is_left_alone(tmp_path: Path) -> None:
    """Nor is one written where nothing has a schedule."""
    project = plain.write(tmp_path, tiny=plain.FEW)
    assert "nothing to deploy" in deploy(project, "--pool", "machines")[1]
    plain.write(tmp_path, tiny=plain.FEW | HOURLY)
    for text in ("deployments: 3\n", "{", "- name: a\n"):
        Deployments(project).path.write_text(text)
        assert "cannot be read" in deploy(project, "--pool", "machines")[1]
        assert Deployments(project).path.read_text() == text


def test_the_form_has_a_field_with_help_and_choices_for_each_parameter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipelines are those of the folder in which somebody deploys."""
    monkeypatch.chdir(plain.write(tmp_path, tiny=plain.FEW, other=plain.FEW).root)
    form = parameter_schema(chain.fn).model_dump_for_openapi()
    fields: dict[str, Any] = form["properties"]
    assert form["required"] == ["pipeline"]
    names = "pipeline project overrides replicates seed only start force engine workers"
    assert [*fields] == names.split()
    assert all(field["description"] for field in fields.values())
    assert fields["pipeline"]["enum"] == ["tiny", "other"]
    for name in ("only", "force"):
        assert {"train", "privatize"} < {*fields[name]["items"]["enum"]}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what artifacts are made of, in their order."""
    made: list[str] = []

    def create(*parts: Any) -> Any:
        made.append(" ".join(map(str, parts)))
        return uuid4()

    for name in vars(artifacts.artifacts).copy():
        if name.endswith("_artifact"):
            monkeypatch.setattr(artifacts.artifacts, name, create)
    context = SimpleNamespace(get=lambda: "a flow run")
    monkeypatch.setattr(artifacts, "FlowRunContext", context)
    return made


def test_a_release_is_told_by_counts_and_epsilon_alone(
    tmp_path: Path, told: list[str]
) -> None:
    """No id and no value of anybody; the second time nothing is drawn or spent."""
    project = town.write(tmp_path)
    town.export(tmp_path, lambda number: f"canary-{number}")
    artifacts.show_plan(town.run(project))
    assert "| privatize | training client | 60 | 8 | drawn |" in told[0]
    artifacts.show_results(project, *records.load_records(project), None)
    artifacts.show_plan(town.run(project))
    assert "nothing is drawn, nothing is spent" in told[-1]
    people = (tmp_path / "people.csv").read_text().split("\n")[1:-1]
    values = {value for row in people for value in row.split(",")[:3]}
    assert not [v for v in values if v in " ".join(told)]
    assert [v for v in values if v in " ".join([*told, people[3]])]  # a leak is seen


def test_a_long_stage_has_a_bar_and_a_short_one_has_none(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It moves every few seconds, and is full at the end."""
    clock = iter([0.0, 1.0, 2.0, 100.0, 113.0, 114.0, 120.0])
    monkeypatch.setattr(artifacts.time, "monotonic", lambda: next(clock))
    shown: list[int] = []
    bar = artifacts.PageProgress(lambda _step, done, _all: shown.append(done))
    for name, done in [("a", 0), ("a", 1), ("a", 3), *(("b", n) for n in range(4))]:
        bar(SimpleNamespace(name=name), done, 3)  # type: ignore[arg-type] - has a name
    assert [text[-16:] for text in told] == ["b: 1 of 3 blocks", "b: 3 of 3 blocks"]
    assert shown == [0, 1, 3, 0, 1, 2, 3]
