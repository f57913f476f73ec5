"""The Python that docs show runs as it stands there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from curvote.cli import app
from curvote.flows.server.private import PrefectServer
from curvote.pipeline.config.project import Project
from tests import house_driver, plain
from tests.house import ROOT
from tests.prepared import put_databases
from tests.utility.models_of import stroke_like

WHOLE = re.DOTALL | re.MULTILINE
BLOCK = re.compile(r"^```python\n(.*?)^```$", WHOLE)


@pytest.mark.parametrize(
    ("page", "about"),
    [
        ("docs/library.md", "FDataIrregular"),
        ("docs/library.md", "TransferKernelClassifier"),
        ("docs/library.md", "private_score"),
        ("docs/library.md", "volunteers = StandardScaler"),
        ("docs/library.md", "load_digits"),
        ("docs/library.md", "HashingVectorizer"),
        ("docs/transfer.md", "combine"),
        ("docs/utility.md", "quantify"),
    ],
)
def test_an_example_runs_as_it_stands(
    page: str,
    about: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the names that the page imports and no more."""
    text = (ROOT / page).read_text(encoding="utf-8")
    (example,) = (block for block in BLOCK.findall(text) if about in block)
    monkeypatch.chdir(ROOT)
    exec(example, {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


def test_the_command_on_a_file_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it stands in docs/utility.md: it ends well, and says what to send."""
    text = (ROOT / "docs" / "utility.md").read_text(encoding="utf-8")
    section = text.partition("## Use\n")[2].partition("\n## ")[0].replace("\\\n", "")
    (line,) = re.findall(r"^\$ (curvote utility .*)$", section, re.MULTILINE)
    made = stroke_like(40)
    people = pd.DataFrame(made.X, columns=list(made.names))
    model = LogisticRegression(max_iter=5000).fit(people, made.y)
    skops.io.dump(model, tmp_path / "model.skops")
    people.assign(stroke=made.y).to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    with pytest.raises(SystemExit) as end:
        app.main()
    said = capsys.readouterr().out
    assert not end.value.code
    assert "nothing sent" in said
    assert "evidence" in said
    assert (tmp_path / "people-utility.png").is_file()
    assert np.isfinite(float(said.splitlines()[1].split()[3]))


def release_pipelines() -> dict[str, str]:
    """Return the whole pipelines of docs/release.md as they stand, by name."""
    text = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    found = re.findall(r"^```yaml\n(pipelines:\n  (\S+):\n.*?)^```$", text, WHOLE)
    return {name: block for block, name in found}


@pytest.mark.parametrize("name", release_pipelines())
def test_each_way_of_a_release_can_be_copied(name: str, tmp_path: Path) -> None:
    """The records here or elsewhere: the page shows a plan, and no error."""
    (tmp_path / "pipelines.yaml").write_text(release_pipelines()[name])
    pd.DataFrame(
        {
            "person": [f"p{i}" for i in range(2100)],
            "age": np.arange(2100) % 80 + 20,
            "sex": np.resize(["f", "m"], 2100),
            "dose": np.arange(2100) % 6,
            "outcome": np.resize(["ill", "well", "well"], 2100),
        }
    ).to_csv(tmp_path / "people.csv", index=False)
    made = plain.plan(Project(tmp_path), name)
    blocked = {step.stage.name for step in made.steps if step.action == "blocked"}
    assert ("privatize" in blocked) is (name != "people-release")


# A `curvote` on the path of a shell: asks this process, prints what it answers.
ASKING = """#!/bin/sh
{{ pwd; echo "$XDG_STATE_HOME"; for word; do echo "$word"; done; }} > {0}/asked
{{ read -r code; cat; exit "$code"; }} < {0}/answered
"""
ENDED = "ended"


def answer(folder: Path, home: Path) -> dict[str, str]:
    """Do each command that a shell asks for; return what the commands printed.

    ``home`` is the folder for state where the shell names none.
    """
    printed: dict[str, str] = {}
    while (asked := (folder / "asked").read_text().splitlines()) != [ENDED]:
        place, state, *words = asked
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            patch.setenv("XDG_STATE_HOME", state or str(home))
            patch.setattr(sys, "argv", [])
            told = house_driver.command(words)
        (folder / "answered").write_text(f"{told['code']}\n{told['out']}")
        printed[" ".join(words)] = told["out"]
    return printed


@pytest.mark.slow
@pytest.mark.usefixtures("own_variables")
def test_a_round_by_envelope_closes_as_it_stands(
    tmp_path: Path, databases: Path, state_home: Path
) -> None:
    """From an empty folder: publish, four clients answer, take, close.

    The shell that runs the script is a process; each `curvote` in it is answered here,
    and all find one server of Prefect.
    """
    place, door = tmp_path / "walks", tmp_path / "door"
    put_databases(databases, plain.write(place))
    (place / "pipelines.yaml").write_text(release_pipelines()["walks"])
    text = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```sh\n(.*?)^```$", text, WHOLE)
    door.mkdir()
    (door / "curvote").write_text(ASKING.format(door))
    (door / "curvote").chmod(0o755)
    for name in ("asked", "answered"):
        os.mkfifo(door / name)
    ended = f"trap 'echo {ENDED} > {door}/asked' EXIT\n"
    with (
        PrefectServer(place) as server,
        subprocess.Popen(
            ["bash", "-c", ended + script],
            cwd=place,
            env=os.environ | {"PATH": f"{door}{os.pathsep}{os.environ['PATH']}"},
            text=True,
        ) as shell,
    ):
        try:
            server.wait()
            printed = answer(door, state_home)
            assert shell.wait(60) == 0
        finally:
            shell.kill()
    assert "accepted 4, refused 0" in printed["intake take walks"]
    assert re.search(r"epsilon=1 +4\b", printed["run walks"])
