"""What MLflow holds of a run: a parent, its cells, their models, nothing twice."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.cli import run as running
from curvote.cli.commands.runs import list_runs
from curvote.curves.columns import grid_names
from curvote.curves.curve_classifier import CurveClassifier
from curvote.flows import environment
from curvote.flows.tracking import log as tracking
from curvote.flows.tracking import usage
from curvote.flows.tracking.log import page_fragment
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import results
from curvote.pipeline.store import records
from curvote.report import sentences
from curvote.report.page import load_page_data
from tests import plain
from tests.mlflow_runs import (
    GRID,
    a_classifier,
    children_of,
    count_models,
    log,
    mlflow_client,
    runs_of,
)
from tests.prepared import put_databases
from tests.tracked_run import CLIENTS, EPSILONS, READ, make_record, make_rows


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, databases: Path
) -> Iterator[Project]:
    """A project whose MLflow database exists; the environment is put back."""
    before = dict(os.environ)
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    place = put_databases(databases, Project(tmp_path_factory.mktemp("tracked")))
    figures = place.reports / "demo" / "figures"
    figures.mkdir(parents=True)
    (figures / "error.png").write_bytes(b"drawing")
    (figures.parent / "report.html").write_text("<html>")
    environment.prepare_environment(place.root)
    yield place
    os.environ.clear()
    os.environ.update(before)


def test_each_cell_is_a_child_with_what_its_system_reads(project: Project) -> None:
    """Parameters are named as --set names them; metrics stand at their epsilon."""
    parent = log(project, make_record())
    children = {c.data.params["epsilon"]: c for c in children_of(parent)}
    assert set(children) == {"0.5", "2"}
    data = children["0.5"].data
    assert data.params == {
        "source.name": "simulated",
        **{f"clients.{name}": str(n) for name, n in CLIENTS.items()},
        "seed": "7",
        "project.size": "4",
        "project.centre": "0",
        "privatize.mechanism": "laplace",
        "train.size": "50",
        "learner.name": "centroid",
        "aggregate.cutoff": "0.8",
        "protocol": "mrma",
        "epsilon": "0.5",
        "learner": "centroid",
    }
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
    info = children["2"].info
    assert info.run_name == "epsilon=2 learner=centroid"
    assert info.end_time - info.start_time == 60_000
    history = mlflow_client().get_metric_history(info.run_id, "misclassification.mrma")
    assert [point.step for point in history] == [2000]


def test_a_parameter_may_be_called_as_any_column(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signs that MLflow takes in no name become dashes."""
    bounds = {"Größe (cm)": [0, 250], "a/b, %": [0, 1]}
    source = {"name": "table", "bounds": bounds}
    monkeypatch.setitem(READ, "ingest", {"source": source})
    parent = log(project, make_record("columns"))
    found = children_of(parent)[0].data.params
    assert found["source.bounds.Größe -cm-"] == "[0, 250]"
    assert found["source.bounds.a-b- -"] == "[0, 1]"


def test_the_run_in_the_list_says_the_main_numbers(project: Project) -> None:
    """Error against epsilon, what it is held against, sizes, effort, data and files."""
    record = make_record("told", pipeline="told", overrides=["train.size=50"])
    parent = mlflow_client().get_run(log(project, record))
    data = parent.data
    known = {"misclassification.mrma": 0.25, "misclassification.majority": 0.25}
    for name, value in (known | {"misclassification.bayes": 0.1}).items():
        history = mlflow_client().get_metric_history(parent.info.run_id, name)
        assert [(p.step, p.value) for p in history] == [(500, value), (2000, value)]
    assert data.metrics["epsilon"] == 2.0
    assert data.metrics["duration"] == 60.0
    assert data.metrics["reused"] == pytest.approx(2 / 8)
    assert "epsilon" not in data.params
    asked = {"N": "120", "d": "4", "replicates": "3", "train.size": "50"}
    assert asked.items() <= data.params.items()
    assert parent.info.run_name == "mrma 25.0 % (epsilon 0.5, centroid), train.size=50"
    assert data.tags["protocol"] == "mrma"
    assert data.tags["data"] == "simulated"
    assert data.tags["mlflow.source.name"] == "curvote run told --set train.size=50"
    assert "25.0 % (epsilon 0.5)" in data.tags["mlflow.note.content"]
    assert len(data.tags["pipeline_key"]) == 64
    (given,) = parent.inputs.dataset_inputs
    assert (given.dataset.name, given.dataset.digest) == ("simulated", "i")
    listed = {e.path for e in mlflow_client().list_artifacts(parent.info.run_id)}
    assert listed == {"report.html", "figures", "config.yaml", "plan.json"}


def test_the_pages_open_where_numbers_are(project: Project) -> None:
    """A saved view has the columns; the address of the pages names it."""
    records.save_record(
        project, replace(make_record("a", pipeline="seen"), mlflow_run="x")
    )
    log(project, make_record("seen", pipeline="seen"))
    experiment = mlflow_client().get_experiment_by_name("seen")
    tag = experiment.tags["mlflow.sharedViewState.headline"]
    state = json.loads(json.loads(tag)["state"])
    assert state["selectedColumns"][:2] == [
        "metrics.`main`",
        "metrics.`misclassification.mrma`",
    ]
    assert state["globalLineChartConfig"]["selectedXAxisMetricKey"] == "epsilon"
    place = f"#/experiments/{experiment.experiment_id}/runs?"
    assert page_fragment(project).startswith(place)
    assert page_fragment(project).endswith("&viewStateShareKey=headline")
    assert "25.0 % (epsilon 0.5, centroid)" in experiment.tags["mlflow.note.content"]


def test_without_a_run_the_pages_open_with_all_pipelines(tmp_path: Path) -> None:
    """Not with what MLflow shows of language models."""
    assert (
        page_fragment(Project(tmp_path))
        == "#/experiments?workflowType=machine_learning"
    )


def test_every_completed_run_registers_one_version(project: Project) -> None:
    """The newest is current; loaded by that name it says which columns it wants.

    A run in which everything was reused has no model of its own, and makes no version.
    """
    import mlflow

    other = make_record("two", pipeline="kept")
    steps = [{**step, "key": step["key"].replace("a", "b")} for step in other.steps]
    for record in (make_record("one", pipeline="kept"), replace(other, steps=steps)):
        log(project, record)
        log(project, replace(record, id=f"{record.id} again"))
    versions = mlflow_client().search_model_versions("name = 'kept'")
    assert {v.tags["curvote.run"] for v in versions} == {"one", "two"}
    assert {v.tags["cell"] for v in versions} == {"epsilon=0.5 learner=centroid"}
    newest = mlflow_client().get_model_version_by_alias("kept", "current")
    assert newest.tags["curvote.run"] == "two"
    model = mlflow.pyfunc.load_model("models:/kept@current")
    curves = pd.DataFrame(np.zeros((2, len(GRID))), columns=grid_names(GRID))
    assert len(model.predict(curves)) == 2
    wrong = curves.rename(columns={"0": "a", "1": "b"})
    with pytest.raises(UserError, match=r"2 columns .* such as '0'.* be 20"):
        model.predict(wrong)


def test_the_logged_model_is_that_of_its_cell(project: Project) -> None:
    """By name, metrics and labels; its example has the grid's columns."""
    import mlflow

    parent = log(project, make_record())
    child = children_of(parent)[0]
    uri = child.data.tags["model_uri"]
    kept = mlflow_client().get_logged_model(uri.removeprefix("models:/"))
    level = child.data.params["epsilon"].replace(".", ",")
    assert kept.name == f"demo epsilon={level} learner=centroid mrma"
    assert {m.key: m.value for m in kept.metrics} == child.data.metrics
    model = mlflow.pyfunc.load_model(uri)
    assert [*model.input_example] == grid_names(GRID)
    curves = np.random.default_rng(0).normal(size=(30, len(GRID)))
    expected = a_classifier().predict(curves)
    assert set(expected) == {"no", "yes"}
    assert list(model.predict(curves)) == list(expected)
    assert (project.state / "mlartifacts" / "models").is_dir()


def test_equal_artifacts_are_linked_and_a_logged_run_is_kept(project: Project) -> None:
    """A repeat has its own metrics, no further model and no second copy of figures."""
    import mlflow

    name = "repeated"
    first = log(project, make_record("first", pipeline=name))
    models = count_models(name)
    second = log(project, make_record("second", pipeline=name))
    assert first != second
    assert count_models(name) == models == len(EPSILONS)
    uris = [
        {c.data.tags["model_uri"] for c in children_of(p, name)}
        for p in (first, second)
    ]
    assert uris[0] == uris[1]
    assert all(c.data.metrics for c in children_of(second, name))
    assert mlflow.get_run(second).data.tags["figures_run"] == first
    listed = {entry.path for entry in mlflow.MlflowClient().list_artifacts(second)}
    assert listed == {"config.yaml", "plan.json"}
    assert log(project, make_record("second", pipeline=name)) == second


def test_changed_artifacts_and_deleted_models_are_logged_anew(project: Project) -> None:
    """A link never points at another classifier or at nothing."""
    import mlflow

    name = "changed"
    first = log(project, make_record("first", pipeline=name))
    uri = children_of(first, name)[0].data.tags["model_uri"]
    mlflow.MlflowClient().delete_logged_model(uri.removeprefix("models:/"))
    log(project, make_record("second", pipeline=name))
    assert count_models(name) == len(EPSILONS)
    steps = [{**step, "key": f"{step['key']}-new"} for step in make_record().steps]
    log(project, make_record("third", pipeline=name, steps=steps))
    assert count_models(name) == 2 * len(EPSILONS)


def test_a_failure_halfway_leaves_no_run(project: Project) -> None:
    """All of an execution is logged, or nothing that a reader could mistake for it."""

    def broken(cell: Cell) -> CurveClassifier:
        if cell["epsilon"] == EPSILONS[-1]:
            raise OSError("disk full")
        return a_classifier()

    with pytest.raises(OSError, match="disk full"):
        log(project, make_record("half", pipeline="half"), model_of=broken)
    assert not runs_of(name="half")
    assert not mlflow_client().search_model_versions("name = 'half'")


def test_a_database_that_cannot_be_written_is_a_warning(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The results stand; the next run logs what is missing, once."""
    monkeypatch.setattr(results, "mean_scores", lambda *_: make_rows())
    monkeypatch.setattr(results, "final_model", lambda *_: a_classifier())
    records.save_record(project, make_record("missed", pipeline="missed"))
    database = project.state / "mlflow.db"
    monkeypatch.chdir(project.root)
    uri = f"sqlite:///file:{database}?mode=ro&uri=true"
    with monkeypatch.context() as readonly:
        readonly.setenv("MLFLOW_TRACKING_URI", uri)
        tracking.log_missing_runs(project)
    assert "warning: MLflow" in capsys.readouterr().err
    assert records.load_records(project, "missed")[0].mlflow_run is None
    tracking.log_missing_runs(project)
    tracking.log_missing_runs(project)
    assert capsys.readouterr().err == ""
    assert records.load_records(project, "missed")[0].mlflow_run
    assert len(runs_of(name="missed")) == 1 + len(EPSILONS)
    left = (project.root / "file:").rglob("*")  # MLflow itself makes a folder there
    assert not [path for path in left if path.is_file()]


def test_runs_of_a_killed_process_are_marked_as_killed(project: Project) -> None:
    """A run left open is closed, unless its process still works on it."""
    import mlflow

    from curvote.flows.tracking.store import close_dead_runs, connect

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
    close_dead_runs(client)
    status = {name: mlflow.get_run(run).info.status for name, run in runs.items()}
    assert status == {"dead": "KILLED", "alive": "RUNNING"}


def test_a_moved_project_logs_into_its_own_folder(
    project: Project, tmp_path: Path
) -> None:
    """MLflow keeps absolute paths; a copy never writes into the original."""
    log(project, make_record("before", pipeline="moving"))
    copy = Project(tmp_path / "copy")
    copy.state.mkdir(parents=True)
    (copy.state / "mlflow.db").write_bytes((project.state / "mlflow.db").read_bytes())
    log(copy, make_record("after", pipeline="moving"), report=project.reports / "demo")
    assert (copy.state / "mlartifacts" / "models").is_dir()
    assert len(runs_of(name="moving")) == 1 + len(EPSILONS)


CLEAN = {"name": "clean", "label": "no privacy", "train": None}


@pytest.mark.parametrize(
    ("name", "protocols", "where"),
    [
        ("plainly", [CLEAN, "mrma"], "epsilon 1, logistic"),
        ("by rule", [CLEAN, "auto", "mrma"], "epsilon 1"),
    ],
)
def test_one_number_stands_for_a_run_in_all_places(
    project: Project,
    capsys: pytest.CaptureFixture[str],
    name: str,
    protocols: list[object],
    where: str,
) -> None:
    """`runs`, the run's own words, MLflow's list and description, `@current`, the page.

    Never a row without privacy, though it comes first; the learner that is named first,
    though another errs less; epsilon 1, though more is asked for.
    """
    asked = {"protocols": protocols, "epsilon": [1, 4], "replicates": 2}
    plain.write(project.root, **{name: plain.TINY | asked})
    record = plain.run(project, name)
    tracking.log_missing_runs(project)
    main = list_runs(project, name, 1)[0]["main"]
    running._print_results(project, record.id)
    assert f"\nmain: {main}\n" in capsys.readouterr().out
    (told,) = [
        r
        for r in runs_of(name=name)
        if "figures" not in r.info.run_name and "mlflow.parentRunId" not in r.data.tags
    ]
    assert told.info.run_name == main
    assert told.data.tags["mlflow.note.content"].startswith(f"{main};")
    current = mlflow_client().get_model_version_by_alias(name, "current")
    assert current.description == main
    assert "epsilon=1" in current.tags["cell"]
    data = load_page_data(project, records.load_records(project, name)[0])
    (value, unit, method, at), *_ = sentences.headline_tiles(data)
    assert f"{method} {value}{unit} ({where})".lower() == main.lower()
    assert at.startswith(where)
    assert "At epsilon 1, " in sentences.headline(data)


def test_the_load_of_the_machine_is_sampled_without_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow's own monitor would make one, while another thread does; off by a word."""
    started: list[Any] = []

    def one_sample(*_: object, args: Any, **__: object) -> Any:
        monitor = partial(usage._keep_sampling, *args)
        return SimpleNamespace(start=lambda: started.append(monitor))

    clock = SimpleNamespace(time=lambda: 5.0, sleep=lambda _: 1 / 0)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    for name, value in {"Thread": one_sample, "time": clock, "_SAMPLES": []}.items():
        monkeypatch.setattr(usage, name, value)
    usage.start_sampling.__wrapped__()
    with pytest.raises(ZeroDivisionError):
        started.pop()()
    ((moment, values),) = usage.usage_between(0, 5000)
    assert moment == 5000
    assert "cpu_utilization_percentage" in values
    assert not usage.usage_between(0, 4999)
    assert not [*tmp_path.iterdir()]
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")
    usage.start_sampling.__wrapped__()
    assert not started
