"""A copy of the product with one system more: a folder, and a line of the registry."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import house_driver
from tests.processes import start_fork

ROOT = Path(__file__).parents[1]
_ENDS = '    "federated": "curvote.systems.federated",\n'


@dataclass(frozen=True)
class House:
    """A copy of curvote, and a project that stands beside it."""

    root: Path
    project: Path

    def command(self, *words: str) -> list[str]:
        """Return the command line of this copy, as ``curvote`` would be called."""
        return [sys.executable, "-m", "curvote.cli", *words]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its processes: its own packages come first."""
        return os.environ | {"PYTHONPATH": str(self.root), "NO_COLOR": "1"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command in the project."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.project,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


def copied(root: Path) -> House:
    """Copy the product into ``root``, and make an empty project."""
    unneeded = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "curvote", root / "curvote", ignore=unneeded)
    project = root / "project"
    project.mkdir()
    return House(root, project)


def with_system(house: House, folder: Path, name: str) -> None:
    """Put a system's folder into the copy, and one line into the registry."""
    unneeded = shutil.ignore_patterns("__pycache__")
    shutil.copytree(folder, house.root / "curvote" / name, ignore=unneeded)
    registry = house.root / "curvote" / "chain" / "registry.py"
    text = registry.read_text()
    assert text.count(_ENDS) == 1
    registry.write_text(
        text.replace(_ENDS, f'{_ENDS}    "{name}": "curvote.{name}",\n')
    )


def run_of(name: str) -> str:
    """Return a script that runs a pipeline without Prefect, and prints its scores."""
    return f"""
import json, sys
from pathlib import Path
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.run.results import mean_scores
from curvote.pipeline.store import records
project = Project(Path.cwd())
made = make_plan(project, PipelinesFile(project).configure_pipeline({name!r}))
record = records.record_start(project, made.configured, made.steps, "pid:1")
for step in made.steps_to_run():
    execute_step(project, step)
record = records.record_end(project, record, "completed")
json.dump(mean_scores(project, record), sys.stdout)
"""


def driven(house: House, *steps: object) -> list[dict[str, Any]]:
    """Do several command lines, scripts and edits in one process of the copy.

    It is a fork of this one, with the packages of others, that forgets the product.
    """

    def work() -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "curvote"]:
            del sys.modules[name]
        sys.path.insert(0, str(house.root))
        house_driver.main()

    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start_fork(work, cwd=house.project, env=house.environment, **pipes) as process:
        out, err = process.communicate(json.dumps(steps), timeout=300)
    assert not process.returncode, err
    found: list[dict[str, Any]] = json.loads(out)
    return found
