"""Three pipelines of one population, of which the first may name a witness."""

import shutil
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import Plan, make_plan
from tests import production
from tests.production import REAL

WIDE = {"per_client": {"epsilon": 40}}
TWO = {
    "one": REAL | {"ledger": WIDE},
    "two": REAL | {"ledger": WIDE, "epsilon": 3},
    "three": REAL | {"ledger": WIDE, "epsilon": 2},
}


def witnessed(path: object) -> dict[str, object]:
    """Return three pipelines of one population; the first names a witness."""
    return TWO | {"one": REAL | {"ledger": {**WIDE, "witness": str(path)}}}


def run(project: Project, name: str) -> Plan:
    """Run one of them."""
    made = make_plan(
        project, PipelinesFile(project).configure_pipeline(name), fetch=True
    )
    for step in made.steps_to_run():
        execute_step(project, step)
    return made


def refused(project: Project, *names: str) -> set[str]:
    """Return what the pipelines are refused with; nothing was released meanwhile."""
    before = state(project)
    said = set()
    for name in names:
        with pytest.raises(UserError) as raised:
            run(project, name)
        said.add(str(raised.value))
    assert state(project) == before
    return said


def state(project: Project) -> object:
    """Return what is stored, and what the ledger says, or that it says nothing."""
    try:
        entries: object = production.ledger_entries(project)
    except UserError as error:
        entries = str(error)
    return sorted(project.artifacts.glob("*/*")), entries


def back(project: Project, snapshot: Path) -> None:
    """Put the whole data folder back."""
    shutil.rmtree(project.root / "data", ignore_errors=True)
    if snapshot.exists():
        shutil.copytree(snapshot, project.root / "data")
