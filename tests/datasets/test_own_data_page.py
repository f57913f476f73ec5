"""docs/own-data.md, as a newcomer follows it in an empty folder."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curvote.cli import app
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from tests import plain
from tests.house import ROOT

PAGE = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
Say = Callable[[str], str]


def blocks(kind: str, part: str = PAGE) -> list[str]:
    """Return the blocks of code of one kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)


def part(title: str) -> str:
    """Return what stands below a title of the page."""
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def commands(text: str) -> list[str]:
    """Return the commands that a text shows."""
    return re.findall(r"^\$ (curvote .*)$", text, re.MULTILINE)


def lines(text: str) -> list[str]:
    """Return lines that say something, without spaces at their ends."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the page makes."""
    folder = tmp_path_factory.mktemp("files")
    (made,) = blocks("python")
    subprocess.run([sys.executable, "-W", "error", "-c", made], cwd=folder, check=True)
    return folder


@pytest.fixture
def say(
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Say:
    """Return what gives a command in an empty folder and returns what it prints."""
    for file in files.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)

    def given(line: str) -> str:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as end:
            app.main()
        out, err = capsys.readouterr()
        assert not end.value.code, err
        return out

    return given


def fill_in(file: Path, stated: str) -> None:
    """Write what the page states over what init left open."""
    values = parse_value(file.read_text(encoding="utf-8"))
    (pipeline,) = values["pipelines"].values()
    own = parse_value(stated)
    assert own.keys() <= pipeline["source"].keys()
    pipeline["source"] |= own
    file.write_text(as_yaml(values), encoding="utf-8")


def run(line: str, folder: Path) -> str:
    """Give a command in a process of its own; return all that it says."""
    _, *words = shlex.split(line)
    done = subprocess.run(
        [sys.executable, "-m", "curvote.cli", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=400,  # a busy machine starts a server slowly
    )
    return done.stdout + done.stderr


def run_plainly(
    project: Project, options: dict[str, Any], tell: Callable[[Project, str], object]
) -> str:
    """Run a pipeline without a server, and tell of it as `curvote run` does."""
    record = plain.run(project, options["pipeline"], block=50)
    tell(project, record.id)
    return record.id


@pytest.mark.parametrize(
    ("title", "project"),
    [
        ("A table", "."),
        ("Curves", "curves"),
        pytest.param("Three axes, and gaps", "axes", marks=pytest.mark.faults),
    ],
)
def test_each_command_works_as_it_stands(title, project, say, tmp_path, monkeypatch):
    """From an empty folder to a page, with what the page states and no more.

    The table's run is a process with a new server; that of curves goes without.
    """
    told = part(title)
    begin, check, go, report = commands(told)
    said = say(begin)
    assert "places marked TO_STATE" in said
    (stated,) = blocks("yaml", told)
    fill_in(tmp_path / project / "pipelines.yaml", stated)
    assert " can run; type: " in say(check)
    monkeypatch.setattr("curvote.cli.run._run_flow", run_plainly)
    printed = say(go) if project != "." else run(go, tmp_path)
    assert "misclassification in %" in printed
    for shown in blocks("text", told):
        assert set(lines(shown)) <= set(lines(printed))
    page = Path(say(report).strip())
    assert page.is_file()
    assert page.is_relative_to(tmp_path)


def test_what_the_page_shows_is_what_is_printed(say: Say, tmp_path: Path) -> None:
    """The answers of `init` and `check`, to the last digit."""
    shown = [block.partition("\n") for block in blocks("console", part("A table"))]
    (init, _, said), (check, _, card) = shown[:2]
    assert lines(say(init.removeprefix("$ "))) == lines(said)
    (stated,) = blocks("yaml", part("A table"))
    fill_in(tmp_path / "pipelines.yaml", stated)
    assert lines(say(check.removeprefix("$ "))) == lines(card)


def test_the_table_can_be_released_as_the_page_says(say: Say, tmp_path: Path) -> None:
    """With its lines in place of those of a study."""
    say(commands(part("A table"))[0])
    (stated,) = blocks("yaml", part("A table"))
    file = tmp_path / "pipelines.yaml"
    fill_in(file, stated)
    values = parse_value(file.read_text(encoding="utf-8"))
    (real,) = blocks("yaml", part("For real"))
    people = values["pipelines"]["people"]
    for study in ("protocols", "epsilon", "replicates"):
        del people[study]
    people.update(parse_value(real))
    file.write_text(as_yaml(values), encoding="utf-8")
    assert "never released" in say("curvote plan people")


def test_the_readme_shows_the_same_commands() -> None:
    """So that what is tested here holds for it, too."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Your own data\n")[2].partition("\n## ")[0]
    assert commands(section) == commands(part("A table"))


def test_nothing_is_open_but_what_is_marked(say: Say, tmp_path: Path) -> None:
    """With the marks replaced, the starter is a pipeline that plans."""
    say(commands(part("Curves"))[0])
    (stated,) = blocks("yaml", part("Curves"))
    fill_in(tmp_path / "curves" / "pipelines.yaml", stated)
    PipelinesFile(Project(tmp_path / "curves")).check_all()
