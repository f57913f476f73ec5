"""Running a pipeline on plain functions: no Prefect, no MLflow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curvote.flows.environment import process_tag
from curvote.papers.registry import file_of
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import unread_sections
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.run.engines import Engine
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import EVERYTHING, Plan, Selection, make_plan
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord

TINY: dict[str, Any] = {
    "source": {"name": "simulated", "points": 20},
    "clients": {"train": 60, "vote": 80, "test": 40},
    "project": {"basis": "bspline", "size": 4, "judge": "coefficients"},
    "train": {"count": 5, "size": 20},
    "aggregate": {"cutoff": 0.7},
    "epsilon": [1, 4],
    "learners": ["logistic", "centroid"],
    "replicates": 5,
    "seed": 7,
}
# The least that is a study: one learner at one epsilon.
FEW = TINY | {"replicates": 2, "epsilon": [4], "learners": ["centroid"]}


def of(*systems: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a pipeline (TINY) without the sections that none of these systems reads.

    It names the system, where there is just one.
    """
    unread = unread_sections(frozenset(systems))
    named = {"protocol": systems[0]} if len(systems) == 1 else {}
    every = TINY if given is None else given
    return {name: own for name, own in every.items() if name not in unread} | named


def write(root: Path, **pipelines: object) -> Project:
    """Write a pipelines.yaml into ``root``."""
    text = as_yaml({"pipelines": pipelines})
    root.mkdir(exist_ok=True)
    (root / "pipelines.yaml").write_text(text)
    return Project(root)


def plan(
    project: Project,
    name: str = "tiny",
    *overrides: str,
    selection: Selection = EVERYTHING,
) -> Plan:
    """Return the plan of a pipeline."""
    configured = file_of(project, name).configure_pipeline(name, overrides)
    return make_plan(project, configured, selection, fetch=True)


def run(
    project: Project,
    name: str = "tiny",
    *overrides: str,
    selection: Selection = EVERYTHING,
    workers: int = 1,
    block: int = 2,
    engine: Engine | None = None,
) -> RunRecord:
    """Do what `curvote run` does to the store, one step after the other."""
    made = plan(project, name, *overrides, selection=selection)
    record = records.record_start(project, made.configured, made.steps, process_tag())
    for step in made.steps_to_run():
        execute_step(
            project, step, engine=engine or Engine("local", workers), block=block
        )
    return records.record_end(project, record, "completed")


def actions(made: Plan) -> dict[str, set[str]]:
    """Return the actions that a plan has for each stage."""
    found: dict[str, set[str]] = {}
    for step in made.steps:
        found.setdefault(step.stage.name, set()).add(step.action)
    return found


def to_run(made: Plan) -> set[str]:
    """Return the stages of which anything runs."""
    return {step.stage.name for step in made.steps_to_run()}


def hashes(project: Project, record: RunRecord) -> dict[str, str]:
    """Return the SHA-256 of every table of a run."""
    from curvote.pipeline.store.artifacts import artifact

    found = {}
    for step in record.steps:
        tables = artifact(project, step["stage"], step["key"]).manifest["tables"]
        for name, entry in tables.items():
            found[f"{step['stage']}/{step['key']}/{name}"] = entry["sha256"]
    return found
