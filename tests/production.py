"""A small production pipeline, and how its tests look at what it did."""

from pathlib import Path
from typing import Any

from curvote.ledger.amounts import Entry
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Step
from curvote.pipeline.release.evidence import ledger_entries
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import Plan, make_plan
from curvote.pipeline.store.artifacts import artifact
from tests import plain

NAME = "real"
REAL = {
    "mode": "production",
    "source": {"name": "simulated", "points": 20},
    "clients": {"train": 60, "vote": 80},
    "project": {"basis": "bspline", "size": 4, "judge": "coefficients"},
    "train": {"count": 5, "size": 20},
    "aggregate": {"cutoff": 0.7},
    "epsilon": 4,
    "learners": ["centroid"],
    "seed": 7,
    "ledger": {"per_client": {"epsilon": 4}},
}


def write(root: Path, **changes: object) -> Project:
    """Write a project whose one pipeline is in production, of the system it names."""
    return plain.write(root, **{NAME: changed(REAL, **changes)})


def changed(given: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a changed pipeline, without what the system that it names never reads."""
    made = given | changes
    return plain.of(made["protocol"], given=made) if "protocol" in made else made


def plan(project: Project, *, new_release: bool = False, run: bool = True) -> Plan:
    """Return the plan of the pipeline."""
    configured = PipelinesFile(project).configure_pipeline(NAME)
    return make_plan(project, configured, fetch=run, new_release=new_release)


def run(project: Project, *, new_release: bool = False) -> Plan:
    """Do all that the plan says."""
    made = plan(project, new_release=new_release)
    for step in made.steps_to_run():
        execute_step(project, step)
    return made


def releases(made: Plan) -> list[Step]:
    """Return the steps in which something leaves clients."""
    return [step for step in made.steps if step.release]


def confirmed(project: Project) -> list[Entry]:
    """Return what the ledger knows to have left."""
    return [entry for entry in ledger_entries(project) if entry.state == "confirmed"]


def bytes_of(project: Project, made: Plan) -> dict[str, str]:
    """Return the SHA-256 of the table of each release that is there."""
    found = {}
    for step in releases(made):
        there = artifact(project, step.stage.name, step.key)
        if there.problem(content=True) is None:
            (table,) = there.manifest["tables"].values()
            found[step.stage.name] = table["sha256"]
    return found
