"""A study of private numbers: who sends what, what the server sees, what is scored."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from curvote.chain.lookup import find_system
from curvote.chain.stage import Columns, Rows, StageContext
from curvote.messages.roles import roles_of_table
from curvote.systems.labels import stages
from curvote.systems.labels.system import describe_numbers
from tests import plain

N, TRAIN = 3000, 2400
PARAMS = {
    "seed": 1,
    "replicates": 1,
    "source.groups": None,
    "clients": {"public": 0, "train": TRAIN, "vote": 0, "test": N - TRAIN},
    "labels_regression.share": 0.25,
    "labels_regression.holdout": 0.5,
    "learner": {"name": "ridge", "label": "ridge", "params": {}},
}
FACTS = {"target": {"lower": 20.0, "upper": 120.0}}


class Fake:
    """A stored artifact of one repetition."""

    def __init__(self, tables: Rows) -> None:
        self.metadata = FACTS
        self.tables = tables

    def columns(
        self, table: str, place: Any, only: Sequence[str] | None = None
    ) -> Columns:
        return self.tables[table]


@pytest.fixture(scope="module")
def clients() -> Columns:
    """Return people with two features and a number that depends on them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 2))
    y = 60 + X @ [20, 10] + rng.normal(0, 8, N)
    return {
        "client_id": np.arange(N),
        "group": np.arange(N),
        "label": np.zeros(N, dtype=np.int64),
        "curve": X,
        "target": y,
    }


def here(
    stage: str, inputs: dict[str, Any], randomizer: str, epsilon: float
) -> StageContext:
    """Return the first repetition of a stage."""
    params = PARAMS | {"epsilon": epsilon, "labels_regression.randomizer": randomizer}
    return StageContext(stage, (0,), (1,), inputs, params, {})


def ran(clients: Columns, randomizer: str, epsilon: float) -> dict[str, Rows]:
    """Return the tables of all stages."""
    names = np.array([str(each) for each in clients["client_id"]], dtype=object)
    features = Fake({"features": {"record": names, "values": clients["curve"]}})
    ingest, own = Fake({"clients": clients}), (randomizer, epsilon)
    sent = stages.privatize_numbers(here("privatize", {"ingest": ingest}, *own))
    known = {"features": features, "privatize": Fake(sent)}
    made = stages.train_on_numbers(here("train", known, *own))
    seen = {"ingest": ingest, "features": features, "train": Fake(made)}
    scores = stages.score_numbers(here("report", seen, *own))
    return {"privatize": sent, "train": made, "report": scores}


def scored(tables: dict[str, Rows]) -> dict[tuple[str, str], float]:
    """Return the scores by method and metric."""
    rows = tables["report"]["scores"]
    named = zip(rows["method"], rows["metric"], rows["value"], strict=True)
    return {(str(method), str(metric)): value for method, metric, value in named}


@pytest.mark.parametrize(
    ("randomizer", "shapes"),
    [("auto", 300), ("rr_on_bins", 300), ("piecewise", 0), ("hybrid", 0)],
)
def test_each_client_sends_one_number(
    randomizer: str, shapes: int, clients: Columns
) -> None:
    """For the histogram, for the model or for the score; what is said is of others."""
    tables = ran(clients, randomizer, 2.0)
    sent = tables["privatize"]
    learnt, held = sent["numbers"]["record"], sent["held_numbers"]["record"]
    assert len(sent["shape_numbers"]["value"]) == shapes
    assert (len(held), len(learnt)) == (1200, 1200 - shapes)
    assert not {*learnt} & {*held}
    spoken_of = {*tables["train"]["forecast"]["record"]}
    assert not spoken_of & {*learnt, *held}
    assert len(spoken_of) == N - 2400 + shapes


@pytest.mark.parametrize("randomizer", ["auto", "piecewise"])
def test_it_learns_and_says_how_well(randomizer: str, clients: Columns) -> None:
    """Better than the mean, worse than without noise; the server's word holds."""
    told = scored(ran(clients, randomizer, 4.0))
    assert told["clean", "rmse"] < told["regression", "rmse"]
    assert told["regression", "rmse"] < told["mean_number", "rmse"] - 2
    off = told["regression", "honest_mse"] - told["regression", "mse"]
    assert abs(off) < 4 * told["regression", "honest_mse_error"]


def test_numbers_of_the_tested_say_nothing_before_the_report(clients: Columns) -> None:
    """Altered, the released numbers and the forecast are the same."""
    altered = clients["target"].copy()
    altered[roles_of_table(clients, PARAMS, 0)["test"]] = 20
    first, again = (
        ran(clients | {"target": y}, "auto", 1.0) for y in (clients["target"], altered)
    )
    for stage, table, column in (
        ("privatize", "numbers", "value"),
        ("train", "forecast", "value"),
        ("train", "honest", "value"),
    ):
        before, after = (each[stage][table][column] for each in (first, again))
        assert np.array_equal(before, after)


def test_the_server_reads_no_client() -> None:
    """Its stage knows public features and what was sent."""
    stages_of = find_system("labels_regression").stages
    (learning,) = [stage for stage in stages_of if stage.name == "train"]
    assert learning.inputs == ("features", "privatize")


def test_what_leaves_is_said() -> None:
    """By the randomizer that the configuration names."""
    (one,) = describe_numbers({"labels_regression": {"randomizer": "hybrid"}}, 14)
    assert (one.mechanism, one.what) == ("hybrid", "one noised number")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"source": {"name": "nhanes-2003"}}, "name a target"),
        ({"learners": ["lasso"]}, "estimator is 'lasso'"),
        ({"learners": [{"name": "ridge", "alpha": 1}]}, "takes no parameters"),
        ({"clients": {"train": 100}}, "clients to test on"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    changed: dict[str, Any], said: str, tmp_path: Any
) -> None:
    """Before anything runs."""
    usual: dict[str, Any] = {
        "protocol": "labels_regression",
        "source": {"name": "nhanes-2003", "target": "hdl_mg_dl"},
        "clients": {"train": 100, "test": 50},
        "epsilon": [1],
    }
    project = plain.write(tmp_path, tiny=usual | changed)
    with pytest.raises(ValueError, match=said):
        plain.plan(project)
