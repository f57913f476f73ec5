"""docs/runs.md, as a user of two runs follows it."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from curvote.cli import app
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.comparison import compare_runs
from tests import plain
from tests.house import ROOT

PAGE = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
_ID = re.compile(r"\d{8}-\d{6}-\d{6}")
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT[\d:]{8}\+00:00")


def blocks(kind: str) -> list[str]:
    """Return the blocks of code of one kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def lines(text: str) -> list[str]:
    """Return what is said, whichever run it is and whenever it was."""
    told = _WHEN.sub("WHEN", _ID.sub("ID", text))
    return [line.rstrip() for line in told.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with the pipeline and the runs of the page."""
    project = Project(tmp_path_factory.mktemp("runs"))
    (pipeline,) = blocks("yaml")
    project.pipelines_file.write_text(pipeline, encoding="utf-8")
    for line in blocks("console")[0].splitlines():
        name, *options = line.removeprefix("$ curvote run ").split(" --set ")
        plain.run(project, name, *options, block=50)
    return project


def test_what_the_page_shows_is_what_is_printed(
    place: Project, own_variables: None
) -> None:
    """Every command but `run` itself, to the last digit."""
    for block in blocks("console")[1:]:
        command, _, shown = block.partition("\n")
        words = command.removeprefix("$ curvote ").split()
        done = CliRunner().invoke(app.app, [*words, "--project", str(place.root)])
        assert lines(done.stdout) == lines(shown)


def test_python_says_what_the_page_shows(
    place: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the project's folder; the second block asks MLflow, which logged nothing."""
    monkeypatch.chdir(place.root)
    (code, _), (shown,) = blocks("python"), blocks("text")
    exec(compile(code, "runs.md", "exec"), {})
    assert lines(capsys.readouterr().out) == lines(shown)


def test_each_key_of_the_document_is_explained(place: Project) -> None:
    """A program that reads one of another version finds the same keys."""
    table = PAGE.partition("Its keys stay as they are:")[2].partition("\n## ")[0]
    told = set(re.findall(r"`(\w+)`", table))
    found = compare_runs(place, "cutoffs~1", "cutoffs").to_document()
    parts = [*found["scores"], *found["keys"], *found["configuration"], found["a"]]
    assert set().union(found, *parts) | {"page", "paired", "welch"} == told


@pytest.mark.usefixtures("own_variables", "blank_figures")
def test_the_page_of_the_example_is_drawn(place: Project) -> None:
    """One file, an axis for the errors of both."""
    words = ["diff", "cutoffs~1", "cutoffs", "--page", "--project", str(place.root)]
    out = CliRunner().invoke(app.app, words).stdout
    (shown,) = re.findall(r"side by side: (.*)", out)
    text = (Path.cwd() / shown).read_text(encoding="utf-8")
    assert text.count("<figcaption>A</figcaption>") == text.count("<h3>") > 0
    assert "1 of 10 changed beyond chance" in text
