"""A stage's key counts all code that can change its numbers."""

from __future__ import annotations

import ast
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from curvote.chain.lookup import systems
from curvote.run.plan import fingerprint
from curvote.run.plan.fingerprint import NEVER_COUNTED, PACKAGE, of_code
from curvote.run.plan.step import Step
from curvote.run.project import Project
from curvote.run.store.artifacts import artifact
from tests import nhanes_table, plain, quantified
from tests.run.test_boundary import CHAINS

ROOT = PACKAGE.parent
# Imported by stages, and in no key: each with its reason.
UNCOUNTED = {
    "curvote.lazy": "finds the module that a name stands in; that one counts",
    "curvote.chain.sharded": "calls the stage here, as the store does in a run",
}
CLEAN = plain.of("clean") | {"clients": {"train": 60, "test": 40}}
DRIFT = plain.of("drift") | {
    "source": {"name": "uniform", "d": 2},
    "clients": {"train": 60},
    "project": {"basis": "identity", "rescale": "min_max"},
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
PIPELINES |= {"clean": CLEAN, "drift": DRIFT}
PIPELINES |= {"utility": quantified.FEATURES, "coefficients": quantified.COEFFICIENTS}


def pipeline_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the pipeline in its smallest form."""
    small = {"replicates": 2, "epsilon": [4]}
    return {name: small.get(name, own) for name, own in given.items()}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Project, Step]]:
    """Return a finished step of every stage module, and its project."""
    found: dict[str, tuple[Project, Step]] = {}
    for name, given in PIPELINES.items():
        folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
        project = plain.write(folder, tiny=pipeline_of(given))
        if given["source"]["name"] == "nhanes-2003":
            nhanes_table.write_source(folder)
        plain.run(project)
        for step in plain.plan(project).steps:
            # The last arrival, and the last learner, read most.
            found[step.stage.module] = project, step
    return found


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
        inputs[name] = source.facts, columns
    return {
        "stage": step.stage.name,
        "module": step.stage.module,
        "params": step.params | {"raw.paths": {}},
        "inputs": inputs,
        "places": step.places,
        "sizes": step.sizes,
    }


def test_every_stage_stands_in_one_of_the_pipelines(
    steps: dict[str, tuple[Project, Step]],
) -> None:
    """Studies of all systems: what releases for real is named without its code."""
    modules = {stage.module for one in systems() for stage in one.stages}
    assert modules <= set(steps)


def test_what_a_stage_imports_is_in_its_key(
    steps: dict[str, tuple[Project, Step]],
) -> None:
    """Each stage runs in a fresh process; whatever of curvote is there then counts."""
    jobs = [job(*found) for found in steps.values()]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[2] / "stage_zygote.py")],
        input=pickle.dumps(jobs),
        capture_output=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "OMP_NUM_THREADS": "1"},
        timeout=300,
        check=False,
    )
    assert not done.returncode, done.stderr.decode()
    missing = {}
    for (module, (_, step)), loaded in zip(
        steps.items(), json.loads(done.stdout), strict=True
    ):
        assert module in loaded
        runs = {name for name in loaded if name not in UNCOUNTED and has_code(name)}
        missing[module] = sorted(runs - set(step.components["code"]))
    assert {name: names for name, names in missing.items() if names} == {}


def has_code(module: str) -> bool:
    """Say whether a module may compute anything: packages and registries may not."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return not path.is_dir() and path.name not in NEVER_COUNTED


def only_names(node: ast.stmt) -> bool:
    """Say whether a statement names things: text, imports, tables, lazy exports."""
    if isinstance(node, ast.If):
        return all(map(only_names, (*node.body, *node.orelse)))
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is None or is_table(node.value)
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return text or isinstance(node, ast.Import | ast.ImportFrom)


def is_table(value: ast.expr) -> bool:
    """Say whether a value is written out, or is `curvote.lazy.exports` of such."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "exports":
        value = value.args[1]
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", NEVER_COUNTED)
def test_files_that_never_count_hold_names_only(name: str) -> None:
    """Code in an ``__init__`` or a registry would change numbers without a trace."""
    files = sorted(PACKAGE.rglob(f"{name}.py"))
    assert len(files) > 3
    for path in files:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        wrong = [ast.unparse(node) for node in body if not only_names(node)]
        assert wrong == [], path


def test_the_split_of_epsilon_is_in_the_key() -> None:
    """It stands behind a lazy export, and was forgotten once: epsilon d times over."""
    assert "curvote.mechanisms.coordinates" in of_code(["curvote.client.report"])


def test_a_change_of_the_split_makes_reports_stale(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other code in it, plan computes the reports anew and says why."""
    plain.run(project)
    real = fingerprint._parsed

    def changed(path: Path, mtime: int, size: int) -> tuple[str, tuple[str, ...]]:
        digest, imports = real(path, mtime, size)
        return ("other" if path.stem == "coordinates" else digest), imports

    monkeypatch.setattr(fingerprint, "_parsed", changed)
    steps = {step.stage.name: step for step in plain.plan(project).steps}
    assert steps["privatize"].action == "run"
    assert "coordinates changed" in steps["privatize"].reason
    assert steps["project"].action == "reuse"
