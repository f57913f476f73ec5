from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.classifier import Linear
from curvote.curve_classifier import CurveClassifier, grid_names
from curvote.representation.basis import projection
from curvote.representation.encoding import Encoding
from curvote.run import history, results
from curvote.run.chain import Cell
from curvote.run.history import RunRecord
from curvote.run.project import Project
from flows import environment, tracking
from flows.cells import by_cell, scalars, stage_keys

GRID = np.linspace(0.0, 1.0, 20)
EPSILONS = (0.5, 2.0)
METHODS = ("weak", "mrma")
CONFIG = {
    "protocol": "mrma",
    "seed": 7,
    "epsilon": list(EPSILONS),
    "source": {"name": "simulated"},
    "project": {"basis": "bspline", "size": 4},
    "train": {"count": 5, "size": 50},
    "privatize": {"mechanism": "laplace"},
    "aggregate": {"cutoff": 0.8},
    "schedule": None,
}


def _step(stage: str, key: str, **cell: Any) -> dict[str, Any]:
    return {
        "stage": stage,
        "cell": {"protocol": None, "epsilon": None, "learner": None, **cell},
        "key": key,
        "action": "run",
    }


def _record(name: str = "one", **changes: Any) -> RunRecord:
    steps = [_step("ingest", "i"), _step("project", "p")]
    for epsilon in EPSILONS:
        shared = {"protocol": "mrma", "epsilon": epsilon}
        steps.append(_step("privatize", f"v{epsilon}", **shared))
        steps.append(_step("train", f"t{epsilon}", **shared, learner="centroid"))
    record = RunRecord(
        id=name,
        pipeline="demo",
        started="2026-01-05T06:00:00+00:00",
        finished="2026-01-05T06:01:00+00:00",
        overrides=[],
        config=CONFIG,
        steps=steps,
        status="completed",
    )
    return replace(record, **changes)


def _rows() -> list[dict[str, Any]]:
    pairs = [(method, "centroid") for method in METHODS] + [("majority", None)]
    return [
        {
            "protocol": "mrma",
            "epsilon": epsilon,
            "learner": learner,
            "method": method,
            "misclassification": 0.25,
            "se": None if method == "majority" else 0.01,
        }
        for epsilon in EPSILONS
        for method, learner in pairs
    ]


def _classifier(_cell: Cell | None = None) -> CurveClassifier:
    constants = {"centre": np.zeros(4), "scale": np.ones(4)}
    encoding = Encoding(projection("bspline", 4, GRID), "tanh", constants)
    return CurveClassifier.of(
        encoding,
        GRID,
        Linear(np.array([1.0, -1.0, 2.0, 0.5]), 0.1, encoding.feature_map),
        ("no", "yes"),
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose MLflow database exists; the environment is put back."""
    before = dict(os.environ)
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    place = Project(tmp_path_factory.mktemp("tracked"))
    figures = place.reports / "demo" / "figures"
    figures.mkdir(parents=True)
    (figures / "error.png").write_bytes(b"drawing")
    (figures.parent / "report.html").write_text("<html>")
    tracking.initialise(place)
    yield place
    os.environ.clear()
    os.environ.update(before)


def _log(project: Project, record: RunRecord, **changes: Any) -> str:
    given: dict[str, Any] = {"report": project.reports / "demo"}
    given |= {"model_of": _classifier} | changes
    return tracking.log_run(project, record, rows=_rows(), **given)


def _runs(where: str = "", name: str = "demo") -> list[Any]:
    import mlflow

    found = mlflow.search_runs(
        experiment_names=[name], filter_string=where, output_format="list"
    )
    return list(found)


def _children(parent: str, name: str = "demo") -> list[Any]:
    return _runs(f"tags.`mlflow.parentRunId` = '{parent}'", name)


def _models(name: str) -> int:
    import mlflow

    experiment = mlflow.get_experiment_by_name(name)
    assert experiment is not None
    client = mlflow.MlflowClient()
    return len(client.search_logged_models([experiment.experiment_id]))


def test_a_run_is_a_parent_with_a_child_for_each_cell(project: Project) -> None:
    """Epsilon is a param, metrics have fixed names, keys and mode are tags."""
    import mlflow

    parent = _log(project, _record())
    children = _children(parent)
    assert {c.data.params["epsilon"] for c in children} == {"0.5", "2"}
    data = children[0].data
    assert data.params["learner"] == "centroid"
    assert data.params["cutoff"] == "0.8"
    assert data.metrics == {
        "misclassification.weak": 0.25,
        "misclassification_se.weak": 0.01,
        "misclassification.mrma": 0.25,
        "misclassification_se.mrma": 0.01,
        "misclassification.majority": 0.25,
    }
    assert data.tags["key.ingest"] == "i"
    assert data.tags["mode"] == "study"
    assert data.tags["private"] == "false"
    assert children[0].info.end_time - children[0].info.start_time == 60_000
    listed = mlflow.MlflowClient().list_artifacts(parent)
    assert {entry.path for entry in listed} == {"report.html", "figures"}


def test_the_logged_model_judges_raw_curves(project: Project) -> None:
    """It names its columns after the grid, returns labels, and holds no real row."""
    import mlflow

    parent = _log(project, _record())
    uri = _children(parent)[0].data.tags["model_uri"]
    model = mlflow.pyfunc.load_model(uri)
    curves = np.random.default_rng(0).normal(size=(30, len(GRID)))
    table = pd.DataFrame(curves, columns=grid_names(GRID))
    expected = _classifier().predict(curves)
    assert set(expected) == {"no", "yes"}
    assert list(model.predict(table)) == list(expected)
    assert list(model.predict(table.iloc[:, ::-1])) == list(expected)
    assert model.metadata.saved_input_example_info is None
    assert (project.state / "mlartifacts" / "models").is_dir()


def test_equal_artifacts_are_linked_and_a_logged_run_is_kept(project: Project) -> None:
    """A repeat has its own metrics, no further model and no second copy of figures."""
    import mlflow

    name = "repeated"
    first = _log(project, _record("first", pipeline=name))
    models = _models(name)
    second = _log(project, _record("second", pipeline=name))
    assert first != second
    assert _models(name) == models == len(EPSILONS)
    uris = [
        {c.data.tags["model_uri"] for c in _children(p, name)} for p in (first, second)
    ]
    assert uris[0] == uris[1]
    assert all(c.data.metrics for c in _children(second, name))
    assert mlflow.get_run(second).data.tags["figures_run"] == first
    assert not mlflow.MlflowClient().list_artifacts(second)
    assert _log(project, _record("second", pipeline=name)) == second


def test_changed_artifacts_and_deleted_models_are_logged_anew(project: Project) -> None:
    """A link never points at another classifier or at nothing."""
    import mlflow

    name = "changed"
    first = _log(project, _record("first", pipeline=name))
    uri = _children(first, name)[0].data.tags["model_uri"]
    mlflow.MlflowClient().delete_logged_model(uri.removeprefix("models:/"))
    _log(project, _record("second", pipeline=name))
    assert _models(name) == len(EPSILONS)
    steps = [{**step, "key": f"{step['key']}-new"} for step in _record().steps]
    _log(project, _record("third", pipeline=name, steps=steps))
    assert _models(name) == 2 * len(EPSILONS)


def test_a_failure_halfway_leaves_no_run(project: Project) -> None:
    """All of an execution is logged, or nothing that a reader could mistake for it."""

    def broken(cell: Cell) -> CurveClassifier:
        if cell.epsilon == EPSILONS[-1]:
            raise OSError("disk full")
        return _classifier()

    with pytest.raises(OSError, match="disk full"):
        _log(project, _record("half", pipeline="half"), model_of=broken)
    assert not _runs(name="half")


def test_a_database_that_cannot_be_written_is_a_warning(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The results stand; the next run logs what is missing, once."""
    monkeypatch.setattr(results, "summary", lambda *_: _rows())
    monkeypatch.setattr(results, "final_model", lambda *_: _classifier())
    history.save(project, _record("missed", pipeline="missed"))
    database = project.state / "mlflow.db"
    uri = f"sqlite:///file:{database}?mode=ro&uri=true"
    with monkeypatch.context() as readonly:
        readonly.setenv("MLFLOW_TRACKING_URI", uri)
        tracking.repair(project)
    assert "warning: MLflow" in capsys.readouterr().err
    assert history.load_all(project, "missed")[0].mlflow_run is None
    tracking.repair(project)
    tracking.repair(project)
    assert capsys.readouterr().err == ""
    assert history.load_all(project, "missed")[0].mlflow_run
    assert len(_runs(name="missed")) == 1 + len(EPSILONS)


def test_runs_of_a_killed_process_are_marked_as_killed(project: Project) -> None:
    """A run left open is closed, unless its process still works on it."""
    import mlflow

    from flows.mlflow_store import connect, sweep

    client = connect(project)
    experiment = client.create_experiment("killed")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    tag = environment.process_tag(gone.pid)
    gone.wait()
    owners = {"dead": tag, "alive": environment.process_tag()}
    runs = {
        name: client.create_run(experiment, tags={"curvote.pid": owner}).info.run_id
        for name, owner in owners.items()
    }
    sweep(client)
    status = {name: mlflow.get_run(run).info.status for name, run in runs.items()}
    assert status == {"dead": "KILLED", "alive": "RUNNING"}


def test_a_moved_project_logs_into_its_own_folder(
    project: Project, tmp_path: Path
) -> None:
    """MLflow keeps absolute paths; a copy never writes into the original."""
    _log(project, _record("before", pipeline="moving"))
    copy = Project(tmp_path / "copy")
    copy.state.mkdir(parents=True)
    (copy.state / "mlflow.db").write_bytes((project.state / "mlflow.db").read_bytes())
    _log(copy, _record("after", pipeline="moving"), report=project.reports / "demo")
    assert (copy.state / "mlartifacts" / "models").is_dir()
    assert len(_runs(name="moving")) == 1 + len(EPSILONS)


def test_cells_take_what_their_epsilon_shares() -> None:
    """The majority stands in every child, and alone only where there is no other."""
    cells = by_cell(_rows())
    assert set(cells) == {Cell("mrma", e, "centroid") for e in EPSILONS}
    alone = by_cell(row for row in _rows() if row["learner"] is None)
    assert set(alone) == {Cell("mrma", e) for e in EPSILONS}


def test_stage_keys_are_those_the_cell_was_computed_from() -> None:
    """Shared stages and its own, none of another epsilon."""
    keys = stage_keys(_record(), Cell("mrma", 2.0, "centroid"))
    assert keys == {"ingest": "i", "project": "p", "privatize": "v2.0", "train": "t2.0"}


def test_params_are_short_scalars_with_one_meaning() -> None:
    """Lists and nothings are left out; an ambiguous name keeps its path."""
    params = scalars(CONFIG)
    assert params["mechanism"] == "laplace"
    assert params["train.size"] == "50"
    assert params["project.size"] == "4"
    assert params["source.name"] == "simulated"
    assert not {"epsilon", "schedule", "size"} & set(params)
