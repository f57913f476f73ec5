"""A whole system is one folder and one line: three classes, two parties, no projection.

The product is copied, `tests/toy` becomes `curvote/toy`, and the registry one line
longer. All that is generic then does its work by the command line: a killed run and the
one after it, reruns with reasons, scores, page, MLflow and audit.
"""

import filecmp
import re
from typing import Any

import pytest

from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from tests.house import ROOT
from tests.toy_town import (
    CELLS,
    STEPS,
    Town,
    read_mlflow,
    run_all,
    run_under_prefect,
)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Run the toy once for all tests."""
    return run_all(tmp_path_factory.mktemp("house"))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Run it under Prefect: killed, and run again."""
    return run_under_prefect(tmp_path_factory.mktemp("killed"))


def test_the_toy_is_one_folder_and_one_line(town: Town) -> None:
    """Nothing else of the copy differs from the product."""
    changed = []
    for name in ("curvote", "curvote/flows", "curvote/tasks"):
        for path in sorted((ROOT / name).rglob("*.*")):
            mine = town.house.root / path.relative_to(ROOT)
            known = "__pycache__" in path.parts or not path.is_file()
            if not (known or filecmp.cmp(path, mine, shallow=False)):
                changed.append(path.relative_to(ROOT).as_posix())
    assert changed == ["curvote/chain/registry.py"]
    before, after = (
        (root / "curvote/chain/registry.py").read_text().splitlines()
        for root in (ROOT, town.house.root)
    )
    assert [line for line in after if line not in before] == [
        '    "toy": "curvote.toy",'
    ]
    assert len(after) == len(before) + 1


@pytest.mark.faults
def test_a_killed_run_is_finished_by_the_same_command(killed: Town) -> None:
    """What was stored is used again; the record of the first says how it ended."""
    assert killed.told["resumed"]["code"] == 0, killed.told["resumed"]["err"]
    said = re.search(rf"{STEPS} steps, (\d+) reused", killed.told["resumed"]["err"])
    assert said, killed.told["resumed"]["err"]
    assert 2 <= int(said.group(1)) < STEPS
    runs = records.load_records(Project(killed.house.project))
    assert [run.status for run in runs] == ["killed", "completed", "partial"]


def test_the_plan_knows_what_changes(town: Town) -> None:
    """All is reused; one party's level concerns its own stage and what follows."""
    assert {row["action"] for row in town.json("again")} == {"reuse"}
    assert len(town.json("again")) == STEPS
    rows = town.json("level")
    runs = {
        (row["stage"], row["cell"]): row["reason"]
        for row in rows
        if row["action"] == "run"
    }
    assert runs["count", "level=open"] == "parameter level.shops 8.0 -> 4.0"
    assert runs["fit_models", "level=open shrink=0"] == "input count changed"
    assert {stage for stage, _ in runs} == {"count", "fit_models", "report"}
    assert all("open" in cell for _, cell in runs)
    reasons = {r["reason"] for r in town.json("code") if r["stage"] == "fit_models"}
    assert reasons == {"code curvote.toy.fit._shares changed"}


@pytest.mark.faults
def test_one_stage_runs_again_by_itself(killed: Town) -> None:
    """And gives the same files, or the store would have refused it."""
    assert killed.told["only"]["code"] == 0, killed.told["only"]["err"]
    assert f"{CELLS} steps, 0 reused" in killed.told["only"]["err"]


def test_scores_have_two_metrics_of_two_methods(town: Town) -> None:
    """A row for each cell, method and metric, under the coordinates of its own axes."""
    rows = town.json("scores")
    assert len(rows) == CELLS * 2 * 2
    assert {(row["method"], row["metric"]) for row in rows} == {
        (method, metric)
        for method in ("centres", "weighted")
        for metric in ("accuracy", "log_loss")
    }
    assert {(row["level"], row["shrink"]) for row in rows} == {
        (level, shrink) for level in ("careful", "open") for shrink in (0.0, 0.5)
    }
    assert all(row["value"] == row[row["metric"]] for row in rows)
    open_ = {r["method"]: r["value"] for r in rows if _is(r, "open", 0, "accuracy")}
    careful = {
        r["method"]: r["value"] for r in rows if _is(r, "careful", 0, "accuracy")
    }
    assert open_["weighted"] > 0.5  # of three classes
    assert open_ != careful


def test_a_second_measure_stands_beside_the_first(town: Town) -> None:
    """With a standard error of its own, in the rows of that one."""
    rows = {row["metric"]: row for row in town.json("scores")}
    assert 0 < rows["accuracy"]["certainty_se"] < rows["accuracy"]["certainty"] < 1
    assert "certainty" not in rows["log_loss"]


@pytest.mark.faults
def test_a_second_measure_is_logged(killed: Town, tracked: dict[str, Any]) -> None:
    """With its standard error, in MLflow."""
    known = {
        row["certainty"]: row["certainty_se"]
        for row in killed.json("scores")
        if row["method"] == "weighted" and row["metric"] == "accuracy"
    }
    logged = [r["metrics"] for r in tracked["runs"] if r["parent"]]
    assert known == {
        own["certainty.weighted"]: own["certainty_se.weighted"] for own in logged
    }


def _is(row: dict[str, Any], level: str, shrink: float, metric: str) -> bool:
    return (row["level"], row["shrink"], row["metric"]) == (level, shrink, metric)


def test_the_printed_table_names_them_too(town: Town) -> None:
    """In the terminal: both metrics, both methods, the values of both axes."""
    out = town.told["table"]["out"]
    assert {"centres", "weighted", "careful", "open", "0.5"} <= set(
        re.findall(r"[\w.]+", out)
    )
    assert "accuracy in %" in out
    assert "log_loss" in out
    assert "misclassification" not in out


def test_the_page_shows_them(town: Town) -> None:
    """Title, a figure for each metric, methods, messages; nothing of curves."""
    assert town.told["page"]["code"] == 0, town.told["page"]["err"]
    page = (town.house.project / "data/reports/town/report.html").read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    for words in (
        "A toy town",
        "Right on new records at each shrink",
        "Log loss at each shrink",
        "The nearest centre of a class.",
        "each shop one noised colour k_rr 1 or 8",
        "colour 8 8.000000000 holds",
        "4 of 4 messages passed",
    ):
        assert words in text, words
    assert "<svg" in page
    assert not {"misclassification", "volunteers", "curves"} & set(text.split())


@pytest.fixture(scope="module")
def tracked(killed: Town) -> Any:
    """What MLflow holds of the runs."""
    return read_mlflow(killed)


@pytest.mark.faults
def test_mlflow_lists_the_run_and_its_cells(tracked: dict[str, Any]) -> None:
    """One parent for the completed run, a child for each cell, with what it reads."""
    (parent,) = [r for r in tracked["runs"] if r["record"] == tracked["record"]]
    children = [r for r in tracked["runs"] if r["parent"] == parent["id"]]
    assert len(children) == CELLS
    for child in children:
        read = set(child["params"])
        assert {"level", "shrink", "parties.people", "replicates", "seed"} <= {
            name.replace("level.people", "level") for name in read
        }
        assert not {name for name in read if name.startswith(("clients", "train"))}
        assert {"accuracy.weighted", "log_loss.weighted"} <= set(child["metrics"])


@pytest.mark.faults
def test_mlflow_draws_the_main_metric(tracked: dict[str, Any]) -> None:
    """The headline has a point for each value on the system's own x-axis."""
    points = tracked["chart"]["accuracy.weighted"]
    assert len({step for step, _ in points}) == 2  # shrink has two values
    assert tracked["chart"]["accuracy_se.weighted"]


@pytest.mark.faults
def test_what_is_logged_is_what_was_scored(tracked: dict[str, Any]) -> None:
    """Each cell's model, on the test records of replicate 0, to the last digit."""
    assert len(tracked["scored"]) == CELLS
    assert all(found == stored for found, stored in tracked["scored"])


def test_the_audit_knows_what_both_parties_send(town: Town) -> None:
    """A row for each message and level; each at its own party's epsilon."""
    rows = town.json("audit")
    assert {(row["mechanism"], row["claimed"]) for row in rows} == {
        ("toy.answer@3", 2),
        ("toy.answer@3", 20),
        ("toy.colour@3", 1),
        ("toy.colour@3", 8),
    }
    assert {row["verdict"] for row in rows} == {"pass"}


def test_its_own_command_is_there(town: Town) -> None:
    """A verb that the toy brings, and the model that it reads from the store."""
    assert town.told["colour"]["code"] == 0, town.told["colour"]["err"]
    assert town.told["colour"]["out"].strip() in ("red", "green", "blue")


def test_bad_input_is_refused_with_its_place(town: Town) -> None:
    """An axis without values, and a section that the toy never reads."""
    empty, foreign = town.told["empty"], town.told["foreign"]
    assert empty["code"] == foreign["code"] == 2
    assert "shrink: is empty; list one value at least." in empty["err"]
    assert "votes: toy never reads it: it belongs to votes" in foreign["err"]


def test_an_altered_model_file_is_not_used(town: Town) -> None:
    """One byte of it: one message, which file, and the way out."""
    refused = town.told["refused"]
    assert refused["code"] == 2
    assert not refused["out"]
    assert "is altered (models.parquet); it is not used." in refused["err"]
    assert "Run the pipeline again" in refused["err"]
