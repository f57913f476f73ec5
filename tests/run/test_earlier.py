"""What the version before stored is read: nothing is released or lost by an update."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curvote.errors import UserError
from curvote.run import audited, history
from curvote.run.project import Project
from curvote.run.results import final_model, outcomes, views
from tests import earlier, plain, production
from tests.exchange import FAR
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
    """Return what a run tells: cells, models, outcomes, audited tasks and losses."""
    record = history.completed(project, "tiny")
    every = views(project, record)
    models = [final_model(project, record, view.cell) for view in every]
    return {
        "cells": [view.cell for view in every],
        "models": [None if m is None else plain_of(m) for m in models],
        "outcomes": outcomes(project, record),
        "tasks": [task.digest() for task in audited.tasks_of(project, record)],
        "losses": audited.exact_losses(project, record),
    }


def plain_of(model: Any) -> dict[str, Any]:
    """Return what a model is made of, its numbers as lists."""
    parts = model.get_params()
    return {n: v.tolist() if hasattr(v, "tolist") else v for n, v in parts.items()}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_run_tells_the_same(tmp_path: Path, name: str) -> None:
    """Cells with None for what they have not, all sections, columns without kinds."""
    project = plain.write(tmp_path, tiny=PIPELINES[name])
    plain.run(project)
    before = told(project)
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


def test_servers_that_were_counted_otherwise_are_refused(tmp_path: Path) -> None:
    """Replicate and server stood in one number: the way out is a run."""
    project = plain.write(tmp_path, tiny=CHAINS["federated"] | FEW)
    plain.run(project)
    record = history.completed(earlier.aged(project), "tiny")
    (view,) = views(project, record)
    with pytest.raises(UserError, match=r"earlier version.* run the pipeline again"):
        final_model(project, record, view.cell)


def test_a_round_of_envelopes_is_read(tmp_path: Path) -> None:
    """A record held the least numbers of all messages, also of those of others."""
    project = plain.write(tmp_path, far=FAR)
    plain.run(project, "far")
    (record,) = history.load_all(earlier.aged(project))
    assert record.config["intake"].keys() > {"min_reports", "min_refinements"}
    assert [task.asks for task in audited.tasks_of(project, record)] == [
        "report",
        "vote",
    ]
