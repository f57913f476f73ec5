"""A town whose people released once, and what may befall its accounts."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.ledger.book import Ledger
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import Plan, make_plan
from curvote.pipeline.store.records import record_end, record_start
from tests import plain, production

NAME, PEOPLE, CAP = "town", 140, 8.0
TABLE = {
    "name": "table",
    "path": "people.csv",
    "id": "person",
    "label": "outcome",
    "positive": "ill",
    "features": ["age", "dose"],
    "bounds": {"age": [0, 100], "dose": [-1, 3]},
}
TOWN = {
    "mode": "production",
    "source": TABLE,
    "clients": {"train": 60, "vote": 80},
    "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
    "train": {"count": 5, "size": 20},
    "epsilon": 8,
    "learners": ["centroid"],
    "seed": 7,
    "ledger": {"per_client": {"epsilon": CAP}},
}
Rewrite = Callable[[int], str]


def write(root: Path, **changes: object) -> Project:
    """Write the pipeline, changed."""
    return plain.write(root, **{NAME: TOWN | changes})


def export(root: Path, spelling: Rewrite) -> None:
    """Write the people, each id as ``spelling`` makes it."""
    rng = np.random.default_rng(5)
    ill = rng.integers(0, 2, PEOPLE)
    people = pd.DataFrame(
        {
            "person": [spelling(1000 + i) for i in range(PEOPLE)],
            "age": (30 + 30 * ill + rng.normal(size=PEOPLE)).round(6),
            "dose": (ill + 0.1 * rng.normal(size=PEOPLE)).round(6),
            "outcome": np.where(ill == 1, "ill", "well"),
        }
    )
    people.to_csv(root / "people.csv", index=False)


def run(project: Project, *, recorded: bool = True, **told: bool) -> Plan:
    """Do all that the plan of a run says, with its record as a flow keeps it."""
    configured = PipelinesFile(project).configure_pipeline(NAME)
    made = make_plan(project, configured, fetch=True, **told)
    record = record_start(project, configured, made.steps, "test") if recorded else None
    for step in made.steps_to_run():
        execute_step(project, step)
    if record:
        record_end(project, record, "blocked" if made.blocked_steps() else "completed")
    return made


def refused(project: Project, **told: bool) -> str:
    """Return what a run is refused with; it has reserved and changed nothing."""
    before = state(project)
    with pytest.raises(UserError) as raised:
        run(project, **told)
    assert state(project) == before
    return str(raised.value)


def state(project: Project) -> object:
    """Return what is released, and what the ledger says."""
    entries = production.ledger_entries(project)
    folders = sorted(p.name for p in project.artifacts.glob("*/*"))
    copy = evidence.copies(project).path
    return entries, folders, copy.exists() and copy.read_bytes()


def saved(project: Project) -> bytes:
    """Return a backup of the ledger."""
    Ledger(project.ledger).close()  # nothing is left in its journal
    return project.ledger.read_bytes()


def restore(project: Project, backup: bytes | None) -> None:
    """Put an older ledger in place, or none."""
    for file in project.state.glob("ledger.sqlite*"):
        file.unlink()
    if backup is not None:
        project.ledger.write_bytes(backup)
