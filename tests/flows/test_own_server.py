"""Runs that a Prefect server of somebody's own orders, through a process worker.

It starts a plain server, a worker and a process for each run, as a user would: a stub
would not show what Prefect makes of a signature, a page or an exception.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from curvote.flows.environment import SERVED_VARIABLE
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.store import records
from tests import plain, production
from tests.house import ROOT
from tests.own_server import POOL, OwnServer, own_server

pytestmark = pytest.mark.faults

WEEKLY = {"schedule": {"cron": "0 6 * * 1"}}
PIPELINES = {"tiny": plain.FEW | WEEKLY, "real": production.REAL | WEEKLY}
WARNING = 30


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """Return a server that knows the flow by both ways of registering it."""
    folder = tmp_path_factory.mktemp("own")
    project = plain.write(folder / "project", **PIPELINES)
    (project.root / "flows").symlink_to(ROOT / "flows")
    with own_server(project.root, folder / "state") as server:
        for flow in (
            "flows/chain.py:chain",
            "flows/serving/scheduled_run.py:scheduled",
        ):
            said = server.command("prefect", "deploy", flow, "-n", "X", "--pool", POOL)
            assert "successfully created" in said
        said = server.command("curvote.cli", "deploy", "--pool", POOL, "--register")
        assert "registered at" in said
        yield server


def stages(server: OwnServer, run: dict[str, Any]) -> dict[str, set[str]]:
    """Return the states of a run's tasks, those of its latest try, by stage."""
    found: dict[str, set[str]] = {}
    for task in server.of_run("task_runs", run):
        if task["flow_run_run_count"] == run["run_count"]:
            found.setdefault(task["name"].split()[0], set()).add(task["state_name"])
    return found


def test_a_run_tells_on_its_page_and_a_stage_is_rerun(own: OwnServer) -> None:
    """No warning stands in its log; artifacts say what was done and what came out.

    Then `only: [train]` as the form sends it; a stage that does not exist is refused.
    """
    run = own.order("curvote/tiny")
    assert run["state"]["type"] == "COMPLETED", run["state"]
    (record,) = records.load_records(own.project, "tiny")
    told = {a["key"]: a["data"] for a in own.of_run("artifacts", run) if a["key"]}
    assert {*told} == {"tiny-plan", "tiny-report", "tiny-summary"}
    assert "| train | computed | never run |" in told["tiny-plan"]
    assert f"MLflow: run `{record.mlflow_run}`" in told["tiny-summary"]
    assert not [e for e in own.of_run("logs", run) if e["level"] >= WARNING]
    tags = [set(task["tags"]) for task in own.of_run("task_runs", run)]
    cell = {"protocol=mrma", "epsilon=4", "learner=centroid"}
    assert {"stage=train", "side=server", *cell} in tags
    form = {"pipeline": "tiny", "overrides": [], "only": ["train"], "seed": None}
    run = own.order("curvote/X", parameters=form)
    assert stages(own, run) == {"train": {"Completed"}, "mlflow": {"Completed"}}
    assert own.order("curvote/X", parameters=form | {"only": ["trian"]})["refused"]


def test_a_failed_run_goes_on_by_retry(own: OwnServer) -> None:
    """Its page says in a sentence why it failed; Retry reuses what was done."""
    place = own.project.artifacts / "evaluate"
    place.rename(place.with_name("aside"))
    place.write_text("no folder")
    run = own.order("curvote/tiny", parameters={"overrides": ["seed=8"]})
    assert "nothing was stored" in run["state"]["message"]
    place.unlink()
    again = own.retry(run)
    done = stages(own, again)
    assert again["state"]["type"] == "COMPLETED"
    assert (done["train"], done["evaluate"]) == ({"Reused"}, {"Completed"})


def test_production_is_refused_until_the_project_names_the_server(
    own: OwnServer,
) -> None:
    """Nothing is drawn or reserved, whatever an order says; then it is drawn once."""
    root = str(own.project.root)
    given = {"pipeline": "real", "project": root}
    variables = {"env": {SERVED_VARIABLE: root, "CURVOTE_STATE": f"{root}/data/state"}}
    orders: list[tuple[str, dict[str, Any]]] = [
        ("curvote/real", {"job_variables": variables}),
        ("scheduled/X", {"parameters": given, "job_variables": variables}),
        ("curvote/real", {"parameters": {"overrides": ["mode=study"]}}),
        ("curvote/tiny", {"parameters": {"overrides": ["mode=production"]}}),
    ]
    said = [own.order(name, **order)["state"]["message"] for name, order in orders]
    assert ["own Prefect server" in text for text in said] == [True, True, False, False]
    assert ["override changes" in text for text in said] == [False, False, True, True]
    assert not own.project.ledger.exists()
    assert not records.load_records(own.project, "real", "completed")
    runtime = {"prefect": {"api": own.url.replace("http", "HTTP") + "/"}}
    text = as_yaml({"runtime": runtime, "pipelines": PIPELINES})
    own.project.pipelines_file.write_text(text)
    run = own.order("curvote/real")
    assert run["state"]["type"] == "COMPLETED", run["state"]
    (told,) = (a for a in own.of_run("artifacts", run) if a["key"] == "real-plan")
    assert "| privatize | training client | 60 | 4 | drawn |" in told["data"]
    assert production.ledger_entries(own.project)
