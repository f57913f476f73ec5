"""Every stage of every system: its key, what a server's side holds, how it grows."""

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.chain.lookup import all_systems
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.definitions import PACKAGE
from curvote.pipeline.plan.step import Step, has_replicates, json_digest
from curvote.pipeline.store.artifacts import artifact
from curvote.pipeline.store.records import RunRecord, completed_run
from tests import nhanes_table, plain, prepared, quantified
from tests.declared import SERVER
from tests.run.test_boundary import CHAINS, OF_LABELS, artifacts, numbers
from tests.traced import missing_functions

# Run by stages, and in no key: each with its reason.
UNCOUNTED = {
    "curvote.base.lazy": "finds where a name stands, which counts, or what to install",
    "curvote.chain.stage": "calls the stage here, as the store does in a run",
}
CLEAN = plain.of("clean") | {"clients": {"train": 60, "test": 40}}
FUNCTIONAL = plain.of("functional") | {"clients": {"train": 60, "test": 40}}
DRIFT = plain.of("drift") | {
    "source": {"name": "uniform", "d": 2},
    "clients": {"train": 60},
    "project": {"basis": "identity", "rescale": "min_max", "lower": -1, "upper": 1},
}
LABELS = {
    "source": {"name": "circle", "n_classes": 3},
    "clients": {"train": 60, "test": 20},
    "protocols": [
        {"name": "labels", "label": "one"},
        {"name": "labels", "label": "two", "rounds": 2},
        "labels_clean",
    ],
    "epsilon": [4],
    "replicates": 2,
}
NUMBERS = {
    "source": {"name": "nhanes-2003", "target": "hdl_mg_dl"},
    "clients": {"train": 60, "test": 20},
    "protocol": "labels_regression",
    "learners": ["ridge"],
    "epsilon": [4],
    "replicates": 2,
}
# Stages that several have are those of the last: it reads no file.
PIPELINES = {"numbers": NUMBERS, "labels": LABELS} | CHAINS
PIPELINES |= {"clean": CLEAN, "drift": DRIFT, "functional": FUNCTIONAL}
PIPELINES |= {"utility": quantified.FEATURES, "coefficients": quantified.COEFFICIENTS}
Steps = dict[tuple[str, str, str], tuple[Project, Step]]


def pipeline_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the pipeline in its smallest form."""
    small = {"replicates": 2, "epsilon": [4]}
    return {name: small.get(name, own) for name, own in given.items()}


def finished(factory: pytest.TempPathFactory, name: str) -> Project:
    """Return a project in which a pipeline has run; tests must not change it."""

    def make(root: Path) -> None:
        plain.run(new(name, root))

    return Project(prepared.folder(factory, f"study {name}", make))


def new(name: str, root: Path) -> Project:
    """Return a project in which a pipeline has yet to run, with the file it reads."""
    project = plain.write(root, tiny=pipeline_of(PIPELINES[name]))
    if PIPELINES[name]["source"]["name"] == "nhanes-2003":
        nhanes_table.write_source(root)
    return project


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Project]:
    """Return a project in which its pipeline has run, for each of them."""
    return {name: finished(tmp_path_factory, name) for name in PIPELINES}


@pytest.fixture(scope="module")
def steps(projects: dict[str, Project]) -> Steps:
    """Return a finished step of every stage, system and code, and its project."""
    # The last arrival, and the last learner, read most.
    return {
        (
            step.stage.module,
            str(step.cell.to_json().get("protocol")),
            json_digest(step.components["code"]),
        ): (project, step)
        for project in projects.values()
        for step in plain.plan(project).steps
    }


def job(project: Project, step: Step) -> dict[str, Any]:
    """Return a step as plain values, to be run where nothing of curvote is loaded."""
    inputs = {}
    for name, at in step.sources.items():
        source = artifact(project, *at)
        tables = source.manifest["tables"]
        columns = {
            (table, place): source.columns(table, place)
            for table in tables
            for place in source.places(table)
        }
        inputs[name] = source.metadata, columns
    return {
        "stage": step.stage.name,
        "module": step.stage.module,
        "params": step.params | {"raw.paths": {f.name: f.path for f in step.raw}},
        "inputs": inputs,
        "places": step.places,
        "sizes": step.sizes,
    }


def test_every_stage_stands_in_one_of_the_pipelines(steps: Steps) -> None:
    """Studies of all systems: what releases for real is named without its code."""
    modules = {stage.module for one in all_systems() for stage in one.stages}
    assert modules <= {module for module, *_ in steps}


def test_what_a_stage_runs_is_in_its_key(steps: Steps) -> None:
    """Each stage runs in a fresh process; each function of curvote counts that ran."""
    jobs = [job(*found) for found in steps.values()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.stage_zygote"],
        input=pickle.dumps(jobs),
        capture_output=True,
        env={"PYTHONPATH": str(PACKAGE.parent), "PATH": "", "OMP_NUM_THREADS": "1"},
        timeout=600,
        check=False,
    )
    assert not done.returncode, done.stderr.decode()
    missing: dict[str, list[str]] = {}
    for (name, (_, step)), run in zip(
        steps.items(), json.loads(done.stdout), strict=True
    ):
        assert len(run) > 1
        for function in missing_functions(run, step.components["code"], UNCOUNTED):
            missing.setdefault(function, []).append(" ".join(name[:2]))
    assert missing == {}


def test_no_server_side_table_holds_a_client_s_numbers(
    projects: dict[str, Project],
) -> None:
    """Whatever the protocol: every table outside data/clients is searched."""
    searched = set()
    for name in CHAINS:
        held = artifacts(projects[name])
        encoded = next(a for a in held if a.stage == "project")
        rows = [encoded.columns("encoded", r) for r in encoded.places("encoded")]
        own = ("coefficients", "z")
        secret = np.concatenate([r[name].ravel() for r in rows for name in own])
        theirs = [a for a in held if a.path.is_relative_to(projects[name].artifacts)]
        places = [(a, t) for a in theirs for t in a.manifest["tables"]]
        assert not any(np.isin(secret, numbers(*place)).any() for place in places)
        searched |= {table for _, table in places}
    only_released = {"judgements"}  # held by tests/protocols/test_judges.py
    assert searched | OF_LABELS | only_released == set(SERVER)


@pytest.mark.parametrize("name", PIPELINES)
def test_more_or_fewer_replicates_are_those_from_nothing(
    projects: dict[str, Project], tmp_path: Path, name: str
) -> None:
    """One replicate, then a second one; elsewhere two, then the first of them.

    Each stage that repeats itself takes over what is there; every table has the same
    bytes under the same key, and the facts are the same.
    """
    two = Project(shutil.copytree(projects[name].root, tmp_path / "two"))
    one = new(name, tmp_path / "one")
    few, many = plain.run(one, "tiny", "replicates=1"), completed_run(two, "tiny")
    known = {"replicates=1": stored(one, few), "replicates=2": stored(two, many)}
    for project, wanted in zip((two, one), known, strict=True):
        made = plain.plan(project, "tiny", wanted).steps_to_run()
        assert {step.earlier.reused_count for step in made if step.earlier} == {1}
        assert not [
            step.name for step in made if has_replicates(step) and not step.earlier
        ]
        assert stored(project, plain.run(project, "tiny", wanted)) == known[wanted]


def stored(project: Project, record: RunRecord) -> dict[tuple[str, str], Any]:
    """Return what the artifacts of a run hold, by (stage, key)."""
    at = [(step["stage"], step["key"]) for step in record.steps]
    manifests = {place: artifact(project, *place).manifest for place in at}
    return {place: (m["tables"], m["facts"]) for place, m in manifests.items()}
