"""What the version before stored is read: nothing is released or lost by an update."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curvote.errors import UserError
from curvote.run import audited, history
from curvote.run.project import Project
from curvote.run.results import final_model, outcomes, summary, views
from curvote.run.store.artifacts import Artifact, artifact
from tests import earlier, plain, production
from tests.run.test_boundary import CHAINS

FEW = {"replicates": 2, "epsilon": [4], "learners": ["centroid"]}
PIPELINES = {
    "mrma": plain.TINY | FEW,
    "grid": plain.TINY | FEW | {"grid": {"project.size": [4, 5]}},
    "online": CHAINS["online"] | FEW,
    "others": CHAINS["direct and others"] | {"epsilon": [4]},
    "clean": plain.of("clean") | {"replicates": 2, "learners": ["centroid"]},
}


def told(project: Project) -> dict[str, Any]:
    """Return all that a run tells: rows, cells, models, outcomes, audited tasks."""
    record = history.completed(project, "tiny")
    every = views(project, record)
    models = [final_model(project, record, view.cell) for view in every]
    return {
        "rows": summary(project, record),
        "cells": [view.cell for view in every],
        "models": [None if m is None else m.coef.tolist() for m in models],
        "outcomes": outcomes(project, record),
        "tasks": [task.digest() for task in audited.tasks_of(project, record)],
        "losses": audited.exact_losses(project, record),
    }


@pytest.mark.parametrize("name", PIPELINES)
def test_a_run_tells_the_same(tmp_path: Path, name: str) -> None:
    """Cells with None for what they have not, all sections, columns without kinds."""
    project = plain.write(tmp_path, tiny=PIPELINES[name])
    plain.run(project)
    before = told(project)
    assert before["rows"]
    assert told(earlier.aged(project)) == before


def test_a_plan_knows_the_cells_of_earlier_records(tmp_path: Path) -> None:
    """Otherwise what merely changed would be said never to have run."""
    project = plain.write(tmp_path, tiny=PIPELINES["grid"])
    plain.run(project)
    made = plain.plan(earlier.aged(project), "tiny", "train.size=19")
    assert {"never run"}.isdisjoint(step.reason for step in made.steps)
    assert "parameter train.size 20 -> 19" in {step.reason for step in made.steps}


@pytest.fixture
def released(tmp_path: Path) -> Project:
    """Return a project that has released, in the form of the version before."""
    project = production.write(tmp_path)
    production.run(project)
    return earlier.aged(project)


def test_nothing_is_released_again(released: Project) -> None:
    """Every step is there, under its name."""
    before = production.confirmed(released)
    assert {step.action for step in production.run(released).steps} == {"reuse"}
    assert production.confirmed(released) == before


def test_what_follows_a_release_reads_what_was_stored_then(released: Project) -> None:
    """Reports, weak classifiers and votes give the same weights, row by row."""
    steps = {step.stage.name: step for step in production.plan(released).steps}
    place = artifact(released, "aggregate", steps["aggregate"].key).path
    before = Artifact(place).columns("ensemble", (0,))
    shutil.rmtree(place)
    made = production.run(released)
    assert [step.stage.name for step in made.to_run()] == ["aggregate"]
    after = Artifact(place).columns("ensemble", (0,))
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_kinds_are_those_that_the_table_is_declared_with(released: Project) -> None:
    """Categories are codes, texts are texts, vectors have their length."""
    steps = {step.stage.name: step for step in production.plan(released).steps}
    reports = artifact(released, "privatize", steps["privatize"].key)
    assert pq.read_schema(reports.path / "reports.parquet").field("z").metadata is None
    columns = reports.columns("reports", (0,))
    assert (columns["arm"].dtype, columns["z"].shape) == (np.dtype(np.int8), (60, 4))
    constants = artifact(released, "project", steps["project"].key)
    assert constants.columns("constants", (0,))["name"].tolist() == ["centre", "scale"]


def test_servers_that_were_counted_otherwise_are_refused(tmp_path: Path) -> None:
    """Replicate and server stood in one number: the way out is a run."""
    project = plain.write(tmp_path, tiny=CHAINS["federated"] | FEW)
    plain.run(project)
    record = history.completed(earlier.aged(project), "tiny")
    (view,) = views(project, record)
    with pytest.raises(UserError, match=r"earlier version.* run the pipeline again"):
        final_model(project, record, view.cell)
    assert summary(project, record)


def test_scores_under_other_names_are_refused(tmp_path: Path) -> None:
    """The check of the noise called what it measured an error: it is run again."""
    given = plain.of("drift") | {
        "source": {"name": "uniform", "d": 2},
        "clients": {"train": 60},
        "project": {"basis": "identity", "rescale": "min_max"},
        "replicates": 1,
        "epsilon": [4],
    }
    project = plain.write(tmp_path, tiny=given)
    plain.run(project)
    (folder,) = project.clients.glob("report/*")
    columns = {"replicate": [0], "method": ["agreement"], "misclassification": [0.1]}
    earlier.write(folder, "scores", [pa.table(columns)])
    record = history.completed(project, "tiny")
    with pytest.raises(UserError, match="`curvote run tiny` computes it anew"):
        summary(project, record)
