"""Runs as objects: what a user asks of them in Python."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import curvote
from curvote.base.errors import UserError
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import mean_scores
from curvote.pipeline.store import records
from tests import plain

TINY = plain.FEW | {"epsilon": [1, 4]}


@pytest.fixture
def twice(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project whose pipeline ran twice, with another cutoff."""
    made = plain.write(tmp_path_factory.mktemp("twice"), tiny=TINY)
    plain.run(made)
    plain.run(made, "tiny", "aggregate.cutoff=0.6")
    return made


def test_a_run_is_found_by_its_pipeline_its_id_or_how_long_ago(twice: Project) -> None:
    """All three name the same; nobody needs an id to see the one before."""
    latest = curvote.load_run("tiny", twice.root)
    before = curvote.load_run("tiny~1", twice.root)
    assert latest.id == records.completed_run(twice, "tiny").id
    assert curvote.load_run(before.id, twice.root).id == before.id != latest.id
    assert "--set aggregate.cutoff=0.6" in repr(latest)
    assert latest.config["aggregate"]["cutoff"] == 0.6


def test_an_earlier_run_is_taken_by_every_command(twice: Project) -> None:
    """`--run tiny~1` of scores, report and predict; too far back is said in words."""
    before = curvote.load_run("tiny~1", twice.root)
    assert records.completed_run(twice, "tiny", "tiny~1").id == before.id
    assert records.completed_run(twice, "tiny", "tiny~0").id != before.id
    for back in ("tiny~2", "tiny~99999999999999999999"):
        with pytest.raises(UserError, match="tiny~1 is the first"):
            records.completed_run(twice, "tiny", back)
    with pytest.raises(UserError, match="no completed run 'other~1'"):
        records.completed_run(twice, "tiny", "other~1")


def test_scores_are_those_of_the_command(finished: Project) -> None:
    """And one by one they have these means."""
    run = curvote.load_run("tiny", finished.root)
    rows = mean_scores(finished, run.record)
    pd.testing.assert_frame_equal(run.scores(), pd.DataFrame(rows))
    each = run.scores(each=True)
    row = next(r for r in rows if r["method"] == "mrma")
    axes = ["method", "metric", "epsilon", "learner"]
    mean = each.groupby(axes)["value"].mean()
    assert mean[tuple(row[axis] for axis in axes)] == pytest.approx(row["value"])
    assert each["epsilon"].dtype == float


def test_a_model_is_had_by_its_cell(finished: Project) -> None:
    """As many values as tell it from others; else they are listed."""
    run = curvote.load_run("tiny", finished.root)
    assert {"protocol": "mrma", "epsilon": 4.0, "learner": "centroid"} in run.cells
    model = run.model({"epsilon": 4, "learner": "centroid"})
    assert set(model.predict(np.zeros((3, 20)))) <= {"-1", "+1"}
    with pytest.raises(UserError, match=r"2 are so; name one: .*learner logistic"):
        run.model({"epsilon": 4})
    with pytest.raises(UserError, match=r"of \{'epsilon': 3\}\. There are: .*epsilon"):
        run.model({"epsilon": 3})


def test_tables_say_which_cell_a_row_is_of(finished: Project) -> None:
    """Where there are several; what is not there is refused with what is."""
    run = curvote.load_run("tiny", finished.root)
    votes = run.table("evaluate", {"epsilon": 4})
    assert set(votes["epsilon"]) == {4.0}
    assert set(votes["cell_learner"]) == {"logistic", "centroid"}
    assert len(run.table("evaluate")) == 2 * len(votes)
    with pytest.raises(UserError, match=r"Did you mean 'evaluate'\?.* It has ingest"):
        run.table("evalute")
    assert list(run.plan()["stage"])[:2] == ["ingest", "project"]


def test_a_table_keeps_its_own_columns(finished: Project) -> None:
    """A number that a stage stored is never hidden by the cell that it is of."""
    run = curvote.load_run("tiny", finished.root)
    assert set(run.table("evaluate")["learner"]) == set(range(5))


def test_what_gc_took_is_said_in_words(twice: Project) -> None:
    """Which stages, and the command that makes them again."""
    before = curvote.load_run("tiny~1", twice.root)
    for stage in ("report", "aggregate"):
        for _, key in before.record.stage_keys(stage):
            for root in twice.stores:
                shutil.rmtree(root / stage / key, ignore_errors=True)
    said = r"is gone: `curvote gc` .*`curvote run tiny"
    for ask in (before.scores, lambda: before.model({"epsilon": 4})):
        with pytest.raises(UserError, match=said):
            ask()


def test_a_run_that_did_not_end_says_so(tmp_path: Path) -> None:
    """What it stored is there to read; what it did not is refused with the reason."""
    project = plain.write(tmp_path / "failed", tiny=TINY)
    made = plain.plan(project)
    begun = records.record_start(project, made.configured, made.steps, "")
    failed = records.record_end(project, begun, "failed", "the disk is full")
    refused = records.record_refusal(project, "tiny", "no such column", "")
    for record, said in (
        (failed, r"is failed \(the disk is full\) and stored nothing in .*report"),
        (refused, "could not be planned: no such column"),
    ):
        run = curvote.load_run(record.id, project.root)
        asked = (run.scores, lambda run=run: run.table("report"))
        for ask in (*asked, lambda run=run: run.model({"epsilon": 4})):
            with pytest.raises(UserError, match=said):
                ask()
        assert len(run.plan()) == len(record.steps)


def test_a_cell_is_a_mapping(finished: Project) -> None:
    """Whoever gives a learner's name is told what to write."""
    run = curvote.load_run("tiny", finished.root)
    with pytest.raises(UserError, match="cell is 'centroid'; write"):
        run.model("centroid")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tinny", "no run 'tinny'. Did you mean 'tiny'"),
        ("tiny~9", "tiny has 1 completed runs: tiny~0 is the first"),
        ("tiny~x", "no run 'tiny~x'"),
        ("../tiny", "no run"),
    ],
)
def test_a_name_of_no_run_is_refused(finished: Project, name: str, said: str) -> None:
    """With where to look."""
    with pytest.raises(UserError) as refused:
        curvote.load_run(name, finished.root)
    assert said in str(refused.value)


def test_a_run_is_equal_to_itself_found_anew(finished: Project) -> None:
    """So that runs can be keys; a number is no name."""
    run = curvote.load_run("tiny", finished.root)
    assert {run, curvote.load_run(run.id, finished.root)} == {run}
    with pytest.raises(UserError, match="name is 3; give a run's id"):
        curvote.load_run(3, finished.root)  # type: ignore[arg-type]


def test_a_model_takes_a_table_whose_columns_are_its_grid(finished: Project) -> None:
    """As numbers, however many digits they have."""
    run = curvote.load_run("tiny", finished.root)
    model = run.model({"epsilon": 4, "learner": "centroid"})
    curves = np.random.default_rng(0).normal(size=(30, 20))
    named = pd.DataFrame(curves, columns=np.linspace(0, 1, 20))
    assert list(model.predict(named)) == list(model.predict(curves))


def test_the_name_is_there_and_costs_nothing() -> None:
    """Importing curvote reads no table library."""
    code = (
        "import curvote, sys; assert 'load_run' in curvote.__all__;"
        "print([n for n in ('pandas', 'pyarrow') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
