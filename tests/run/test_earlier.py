"""What the version before stored is read: nothing is released or lost by an update."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from curvote.base.errors import UserError
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import file_digest
from curvote.pipeline.run import audit_tasks
from curvote.pipeline.run.results import (
    final_model,
    final_views,
    mean_scores,
    production_outcomes,
)
from curvote.pipeline.store import records
from curvote.pipeline.store.arrow import to_columns
from curvote.pipeline.store.artifacts import MANIFEST, Artifact, write_json
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
    record = records.completed_run(project, "tiny")
    every = final_views(project, record)
    models = [final_model(project, record, view.cell) for view in every]
    return {
        "cells": [view.cell for view in every],
        "models": [None if m is None else plain_of(m) for m in models],
        "outcomes": production_outcomes(project, record),
        "tasks": [task.digest() for task in audit_tasks.run_tasks(project, record)],
        "losses": audit_tasks.exact_losses(project, record),
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
    record = records.completed_run(earlier.aged(project), "tiny")
    (view,) = final_views(project, record)
    with pytest.raises(UserError, match=r"earlier version.* run the pipeline again"):
        final_model(project, record, view.cell)


def test_a_round_of_envelopes_is_read(tmp_path: Path) -> None:
    """A record held the least numbers of all messages, also of those of others."""
    project = plain.write(tmp_path, far=FAR)
    plain.run(project, "far")
    (record,) = records.load_records(earlier.aged(project))
    assert record.config["intake"].keys() > {"min_reports", "min_refinements"}
    assert [task.asks for task in audit_tasks.run_tasks(project, record)] == [
        "report",
        "vote",
    ]


def _without_kinds(path: Path) -> None:
    """Write a table as it was before fields told their kinds."""
    table = pq.read_table(path)
    fields = [pa.field(each.name, each.type) for each in table.schema]
    pq.write_table(table.cast(pa.schema(fields)), path)


def test_tables_of_the_version_before_are_read(
    finished: Project, tmp_path: Path
) -> None:
    """Every table of a run: vectors, categories, text and numbers as they were."""
    found = [f for root in finished.stores for f in root.glob("*/*/*.parquet")]
    names = {path.stem for path in found} - {"scores"}
    assert {"clients", "encoded", "reports", "weak", "votes", "ensemble"} <= names
    for path in found:
        copy = shutil.copy(path, tmp_path / path.name)
        _without_kinds(Path(copy))
        new, old = (to_columns(path.stem, pq.read_table(file)) for file in (path, copy))
        assert set(new) == set(old)
        for column, values in new.items():
            assert_array_equal(values, old[column], f"{path.stem}.{column}")


def _made_before(artifact: Path) -> None:
    """Give an artifact the form that the version before wrote."""
    earlier.age(artifact)
    manifest = json.loads((artifact / MANIFEST).read_text())
    manifest["components"]["contract"] = 2
    write_json(artifact / MANIFEST, manifest)


def test_production_goes_on_from_what_the_version_before_stored(tmp_path: Path) -> None:
    """What was asked of clients stands; the server's last stage gives the same."""
    project = production.write(tmp_path)
    made = production.run(project)
    keys = {step.stage.name: step.key for step in made.steps}
    ensemble = project.artifacts / "aggregate" / keys["aggregate"]
    before = Artifact(ensemble).columns("ensemble", (0,))
    for stage in ("ingest", "project"):
        _made_before(project.clients / stage / keys[stage])
    _made_before(project.artifacts / "train" / keys["train"])
    shutil.rmtree(ensemble)
    again = production.run(project)
    assert {s.stage.name for s in again.steps if s.action == "run"} == {"aggregate"}
    after = Artifact(ensemble).columns("ensemble", (0,))
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert len(production.confirmed(project)) == 2


def test_scores_of_the_version_before_are_told_from_ours(done: Project) -> None:
    """A column for each metric: whose run it was is said, and what to do."""
    record = records.completed_run(done, "tiny")
    for _, key in record.stage_keys("report"):
        folder = done.clients / "report" / key
        old = pa.table(
            {"replicate": [0], "method": ["mrma"], "misclassification": [0.2]}
        )
        pq.write_table(old, folder / "scores.parquet")
        manifest = json.loads((folder / MANIFEST).read_text())
        path = folder / "scores.parquet"
        entry = {"rows": 1, "bytes": path.stat().st_size, "sha256": file_digest(path)}
        write_json(folder / MANIFEST, manifest | {"tables": {"scores": entry}})
    with pytest.raises(UserError, match=r"an earlier version .* `curvote run tiny`"):
        mean_scores(done, record)


def test_a_record_of_the_version_before_is_read(done: Project) -> None:
    """It named every coordinate, and held sections of all systems."""
    record = records.completed_run(done, "tiny")
    more = {"federation": {"servers": 5}, "votes": {"directions": 9}}
    config = (
        record.config | more | {"online": record.config["online"] | {"arrivals": 1}}
    )
    absent = dict.fromkeys(("protocol", "epsilon", "learner", "setting", "arrival"))
    steps = [step | {"cell": absent | step["cell"]} for step in record.steps]
    old = records.save_record(done, replace(record, config=config, steps=steps))
    assert mean_scores(done, old) == mean_scores(done, record)
    assert plain.to_run(plain.plan(done)) == set()
