"""docs/architecture.md is true: its files exist, and its examples run as they stand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.house import ROOT, House, copied, driven

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _blocks(first: str) -> Iterator[tuple[str, str]]:
    """Yield (what follows the mark, text) of the Python blocks of one kind."""
    for language, text in BLOCK.findall(PAGE):
        mark, _, rest = text.partition("\n")
        if language == "python" and mark.startswith(f"# {first}"):
            yield mark.removeprefix(f"# {first}").strip(), rest


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Return a copy of the product with everything that the page adds."""
    made = copied(tmp_path_factory.mktemp("house"))
    for name, text in _blocks("file:"):
        path = made.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for name, line in _blocks("add to:"):
        path = made.root / name
        before, end, after = path.read_text().partition("\n}\n")
        path.write_text(f"{before}\n{line.rstrip()}{end}{after}")
    (yaml,) = (text for language, text in BLOCK.findall(PAGE) if language == "yaml")
    (made.project / "pipelines.yaml").write_text(yaml)
    return made


def test_every_file_that_the_page_names_is_there() -> None:
    """A path in it is a file of the house, or one that the page itself adds."""
    added = {name for name, _ in _blocks("file:")}
    named = set(re.findall(r"`([\w/]+\.(?:py|toml|md))`", PAGE))
    assert len(named) > 20
    places = (ROOT, ROOT / "curvote")
    absent = {n for n in named if not any((at / n).exists() for at in places)}
    assert absent - added == {"system.py"}


def test_the_picture_names_every_part() -> None:
    """Each package of curvote stands in it, and nothing that there is not."""
    text = PAGE.partition("```\n")[2].partition("```")[0]
    packages = {path.parent.name for path in (ROOT / "curvote").glob("*/__init__.py")}
    assert packages | {"flows", "tasks"} == set(re.findall(r"(\w+)/", text))


@pytest.mark.parametrize(
    "example",
    [text for _, text in _blocks("try")],
    ids=["mechanism", "learner", "message"],
)
def test_an_example_runs_as_it_stands(house: House, example: str) -> None:
    """In a fresh process of the copy."""
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=house.project,
        env=house.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.returncode, done.stderr


RUN = """
import json, sys
from pathlib import Path
from curvote.run import history
from curvote.run.config.file import PipelinesFile
from curvote.run.execute import execute
from curvote.run.planner import make_plan
from curvote.run.project import Project
from curvote.run.summary import summary
project = Project(Path.cwd())
made = make_plan(project, PipelinesFile(project).configured("steps"))
record = history.begin(project, made.configured, made.steps, "pid:1")
for step in made.to_run():
    execute(project, step)
record = history.finish(project, record, "completed")
json.dump(summary(project, record), sys.stdout)
"""


def test_what_was_added_makes_a_pipeline(house: House) -> None:
    """Data set, learner and system together; the hint learns what there is to learn."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=house.project,
        env=house.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.returncode, done.stderr
    rows = json.loads(done.stdout)
    assert {"hint", "mrma"} <= {row["method"] for row in rows}
    assert {row["learner"] for row in rows if row["method"] == "mrma"} == {"two_steps"}
    (listed, planned) = driven(house, ["list", "--json"], ["plan", "steps", "--json"])
    known = json.loads(listed["out"])
    assert "rounded" in known["mechanisms"]
    assert "two_steps" in known["learners"]
    assert "steps" in known["sources"]
    assert {row["action"] for row in json.loads(planned["out"])} == {"reuse"}
