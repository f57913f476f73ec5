"""The whole chain under Prefect, once for all tests: run, reuse, MLflow, no leak."""

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data.simulation import simulated
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import mean_scores
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord
from tests import plain
from tests.exchange import FAR
from tests.prepared import put_databases
from tests.production import REAL

CANARY = 12.345678901234567
TEXTS = (b"12.34567890", struct.pack("<d", CANARY), struct.pack(">d", CANARY))


@dataclass
class Ran:
    """A project after two runs of its tiny pipeline, the second one all reuse.

    Two more are in production: ``real`` with its clients here, ``far`` without them.
    """

    project: Project
    first: RunRecord
    second: RunRecord
    states: dict[str, set[str]]
    real: RunRecord
    far: RunRecord


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, databases: Path) -> Iterator[Ran]:
    """Run the chain twice in one process, every client's curve carrying a canary."""
    tiny = plain.FEW | {"epsilon": [1, 4]}
    three = {"tiny": tiny, "real": REAL, "far": FAR}
    project = plain.write(tmp_path_factory.mktemp("chain"), **three)
    put_databases(databases, project)
    before = dict(os.environ)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "generate", _planted)
        yield _two_runs(project)
    os.environ.clear()
    os.environ.update(before)


real_generate = simulated.generate


def _planted(generator: np.random.Generator, n: int, points: int = 100) -> object:
    curves, labels = real_generate(generator, n, points)
    curves[:, 3] = CANARY
    return curves, labels


def _two_runs(project: Project) -> Ran:
    from curvote.flows.environment import prepare_environment
    from curvote.flows.server.flow_runs import close_dead_flow_runs
    from curvote.flows.server.private import PrefectServer

    os.environ.pop("PREFECT_API_URL", None)
    prepare_environment(project.root)
    with PrefectServer(project.root) as server:
        from curvote.flows.chain import chain

        server.wait()
        close_dead_flow_runs()
        given = {"pipeline": "tiny", "project": str(project.root), "workers": 1}
        ids = [chain(**given) for _ in range(2)]
        with pytest.raises(UserError, match=r"--set aggregate\.cutoff=2: aggregate"):
            chain(**given, overrides=["aggregate.cutoff=2"])
        states = _task_states()
        ids += [chain(**given | {"pipeline": name}) for name in ("real", "far")]
    by_id = {r.id: r for r in records.load_records(project)}
    first, second, real, far = (by_id[i] for i in ids)
    return Ran(project, first, second, states, real, far)


def _task_states() -> dict[str, set[str]]:
    """Return the names of task states by stage; they are recorded after the fact."""
    import time

    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import TaskRunSort

    for _ in range(100):
        with get_client(sync_client=True) as client:
            runs = client.read_task_runs(limit=200, sort=TaskRunSort.ID_DESC)
        if len(runs) >= 2 * 14 + 2:
            break
        time.sleep(0.2)
    found: dict[str, set[str]] = {}
    for run in runs:
        # Until its name is recorded, a task run is called by its task and a suffix.
        name = run.name.split()[0].partition("-")[0]
        found.setdefault(name, set()).add(run.state_name or "")
    return found


def test_the_first_run_computes_everything_and_the_second_nothing(ran: Ran) -> None:
    """The records say what was done, and the tables are the plain functions' own."""
    assert ran.first.status == ran.second.status == "completed"
    assert {step["action"] for step in ran.first.steps} == {"run"}
    assert {step["action"] for step in ran.second.steps} == {"reuse"}
    assert mean_scores(ran.project, ran.first) == mean_scores(ran.project, ran.second)


def test_prefect_shows_one_task_run_for_each_step_and_what_was_reused(ran: Ran) -> None:
    """Stages are task runs; a reused one says so in the name of its state."""
    stages = {step["stage"] for step in ran.first.steps}
    assert set(ran.states) == stages | {"page", "mlflow"}
    assert all(ran.states[s] == {"Completed", "Reused"} for s in stages)


def test_scores_hold_every_method_once(ran: Ran) -> None:
    """8 methods for each epsilon, two baselines once for each epsilon."""
    rows = mean_scores(ran.project, ran.first)
    assert len(rows) == 2 * (8 + 2)
    majority = [row for row in rows if row["method"] == "majority"]
    assert [row["learner"] for row in majority] == [None, None]
    assert all(0 <= row["misclassification"] <= 1 for row in rows)
    assert all(row["replicates"] == 2 and row["se"] >= 0 for row in rows)
    json.dumps(rows, allow_nan=False)


def test_mlflow_has_a_parent_and_a_child_for_each_cell_of_both_runs(ran: Ran) -> None:
    """Metrics are copied for a reused run; its models are linked, not logged again."""
    runs = _mlflow_runs(ran.project, "tiny")
    for record in (ran.first, ran.second):
        children = [
            r
            for r in runs
            if r.data.tags.get("mlflow.parentRunId") == record.mlflow_run
        ]
        assert len(children) == 2
        for child in children:
            assert child.data.params["epsilon"] in {"1", "1.0", "4", "4.0"}
            assert "misclassification.mrma" in child.data.metrics
            assert "misclassification.majority" in child.data.metrics
    models = list((ran.project.state / "mlartifacts").rglob("MLmodel"))
    assert len(models) == 2 + 1


def _mlflow_runs(project: Project, name: str) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{project.state / 'mlflow.db'}")
    experiment = client.get_experiment_by_name(name)
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id], max_results=200))


def holds_canary(path: Path) -> bool:
    """Return whether a file holds the planted value, as text or as a double."""
    content = path.read_bytes()
    return any(text in content for text in TEXTS)


def test_no_raw_value_in_any_log_mlflow_run_prefect_result_or_report(
    ran: Ran, tmp_path: Path
) -> None:
    """Everything outside data/clients is searched, byte by byte."""
    control = tmp_path / "control"
    for text in TEXTS:
        control.write_bytes(b"..." + text + b"...")
        assert holds_canary(control)
    data = ran.project.root / "data"
    files = [f for f in data.rglob("*") if f.is_file()]
    files = [f for f in files if not f.is_relative_to(ran.project.clients)]
    kinds = {f.name for f in files}
    assert {"mlflow.db", "prefect.db", "server.log", "report.html"} <= kinds
    leaks = [f for f in files if holds_canary(f)]
    assert leaks == []


def test_production_is_logged_as_real_without_a_score(ran: Ran) -> None:
    """A child holds counts and estimated utilities; no true error is known."""
    assert ran.real.status == "completed"
    assert mean_scores(ran.project, ran.real) == []
    _, child = sorted(
        _mlflow_runs(ran.project, "real"), key=lambda r: len(r.data.metrics)
    )
    assert child.data.tags["private"] == "true"
    assert child.data.metrics["reports"] == 60
    assert child.data.metrics["votes"] == 80
    assert not any("misclassification" in name for name in child.data.metrics)
    text = (ran.project.reports / "real" / "report.html").read_text()
    assert "This is a real release." in text
    assert "What the ledger counts" in text


def test_without_envelopes_a_run_is_blocked_and_publishes(ran: Ran) -> None:
    """It ends well, says what it waits for, and leaves task and invitations."""
    assert ran.far.status == "blocked"
    actions = {step["stage"]: step["action"] for step in ran.far.steps}
    assert actions["project"] == "run"
    assert actions["privatize"] == actions["aggregate"] == "blocked"
    files = sorted(f.name for f in ran.project.published("far").iterdir())
    assert files == ["report-1.invitations.jsonl", "report-1.task.json"]


def test_the_report_stands_beside_its_figures(ran: Ran) -> None:
    """One HTML file and the same figures as PNG and SVG."""
    folder = ran.project.reports / "tiny"
    assert (folder / "report.html").stat().st_size > 50_000
    kinds = {path.suffix for path in (folder / "figures").iterdir()}
    assert kinds == {".png", ".svg"}
