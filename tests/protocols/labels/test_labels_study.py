"""A study of private labels: who sees what, and what a change makes anew."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.chain.lookup import find_system
from curvote.data.simulation import records
from curvote.messages import roles
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import RunView, final_views, replicate_scores
from curvote.pipeline.store.artifacts import Artifact
from curvote.systems.labels import stages
from tests import plain

K, TRAIN, TEST = 4, 600, 200
STUDY: dict[str, Any] = {
    "source": {"name": "circle", "n_classes": K, "sigma": "2/K"},
    "clients": {"train": TRAIN, "test": TEST},
    "learners": [{"name": "knn", "k": 40, "label": "knn-40"}, "spectral"],
    "protocols": [
        {"name": "labels", "label": "auto"},
        {"name": "labels", "label": "vector", "encoder": "vector"},
        {"name": "labels", "label": "lp_2st", "rounds": 2},
        {"name": "labels_clean", "label": "clean"},
    ],
    "epsilon": [2],
    "replicates": 2,
    "seed": 3,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project whose study has run."""
    made = plain.write(tmp_path_factory.mktemp("labels"), tiny=STUDY)
    plain.run(made)
    return made


@pytest.fixture(scope="module")
def every(project: Project) -> list[RunView]:
    """Return its cells."""
    return final_views(project, plain.records.completed_run(project, "tiny"))


def cell(every: list[RunView], protocol: str, learner: str) -> RunView:
    """Return one cell."""
    named = (protocol, learner)
    (found,) = (v for v in every if (v.cell["protocol"], v.cell["learner"]) == named)
    return found


def test_every_method_is_scored_and_bayes_is_best(project: Project) -> None:
    """Models, the largest class, the best rule, and no privacy: all on test records."""
    table = replicate_scores(project, plain.records.completed_run(project, "tiny"))
    told = table[table["metric"] == "accuracy"]
    means = told.groupby("method")["value"].mean()
    assert set(means.index) == {"labels", "majority", "bayes", "clean"}
    assert means["majority"] < 0.4
    assert 0.6 < means["labels"] < means["bayes"] + 0.03
    assert {"balanced_accuracy", "ece", "honest", "honest_error"} < {*table["metric"]}


@pytest.mark.parametrize("protocol", ["auto", "vector", "lp_2st"])
def test_each_training_record_has_one_code(every: list[RunView], protocol: str) -> None:
    """Beside the record's name; of two rounds each half is asked in one."""
    view = cell(every, protocol, "knn-40")
    clients = view.columns("ingest", "clients")
    sizes = view.settings.clients.model_dump()
    mine = roles.roles_of_table(
        clients, {"seed": 3, "clients": sizes, "source.groups": None}, 0
    )
    stages = ["privatize", *(["again"] if protocol == "lp_2st" else [])]
    named = [*np.concatenate([view.columns(s, "codes")["record"] for s in stages])]
    assert sorted(named) == sorted(str(clients["client_id"][r]) for r in mine["train"])


def test_the_server_reads_no_label(every: list[RunView]) -> None:
    """What trains reads public tables and codes; no stage before the report more."""
    for name in ("labels", "labels_two"):
        for stage in find_system(name).all_stages:
            if stage.side == "server":
                assert not any(i.partition("@")[0] == "ingest" for i in stage.inputs)
    view = cell(every, "auto", "spectral")
    assert set(view.columns("features", "features")) == {"record", "values"}


def test_labels_that_nobody_encoded_change_nothing_on_the_server(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of tested records are altered: codes, models, words stay, byte by byte."""
    real = records.CIRCLE.clients

    def altered(*given: Any) -> dict[str, Any]:
        table = real(*given)
        asked = {"seed": 3, "clients": sizes, "source.groups": None}
        # The first repetition's roles; the second's are compared by their codes alone.
        tested = roles.roles_of_table(table, asked, 0)["test"]
        label = table["label"].copy()
        label[tested] = (label[tested] + 1) % K
        return table | {"label": label}

    sizes = {"public": 0, "train": TRAIN, "vote": 0, "test": TEST}
    monkeypatch.setattr(records.CIRCLE, "clients", altered)
    other = plain.write(tmp_path, tiny=STUDY | {"replicates": 1})
    one = final_views(other, plain.run(other, "tiny"))
    two = final_views(project, plain.records.completed_run(project, "tiny"))
    for protocol in ("auto", "lp_2st"):
        pair = [cell(every, protocol, "spectral") for every in (one, two)]
        for stage, table in (
            ("privatize", "codes"),
            ("train", "said"),
            ("train", "honest"),
            ("train", "shares"),
            ("train", "kept"),
        ):
            first, second = (view.columns(stage, table) for view in pair)
            for name, values in first.items():
                assert np.array_equal(values, second[name]), (stage, table, name)


def test_another_learner_asks_nobody(project: Project) -> None:
    """Only train and report run; another encoder draws new codes."""
    made = plain.plan(project, "tiny", "learners=[{name: knn, k: 30, label: other}]")
    assert plain.actions(made)["privatize"] == {"reuse"}
    assert plain.actions(made)["train"] == {"run"}
    again = plain.plan(project, "tiny", "labels.holdout=0.3")
    assert plain.actions(again)["privatize"] == {"reuse"}
    assert plain.actions(again)["graph"] == {"reuse"}


def test_what_the_server_claims_is_about_records_it_did_not_use(
    every: list[RunView],
) -> None:
    """A fifth of the codes: each of them public, and the statement has an interval."""
    told = pd.DataFrame(cell(every, "auto", "knn-40").columns("train", "honest"))
    assert set(told["scoring"]) == {
        "accuracy",
        "balanced_accuracy",
        "brier",
        "log_loss",
    }
    assert set(told["n"]) == {TRAIN // 5}
    assert (told["low"] < told["value"]).all()


def test_the_store_keeps_one_model_a_cell(every: list[RunView]) -> None:
    """That of the first repetition; it says what the scored one said."""
    view = cell(every, "auto", "spectral")
    assert isinstance(view.artifact("train"), Artifact)
    assert len(view.columns("train", "kept", (0,))["model"]) == 1
    assert len(view.columns("train", "kept", (1,))["model"]) == 0
    model = view.system.final_model(view)
    said = view.columns("train", "said")
    clients = view.columns("ingest", "clients")
    rows = stages.rows_by_name(clients["client_id"].astype(str), said["record"])
    told = model.predict(clients["curve"][rows])
    assert [*told] == [str(place) for place in said["place"]]


def test_a_task_names_what_was_chosen_for_it(every: list[RunView]) -> None:
    """The encoder, and its size of sets: a later rule may choose another."""
    task = cell(every, "auto", "knn-40").metadata("privatize")["task"]
    assert (task["encoder"], task["params"]) == ("subset_selection", {"omega": 1})
    assert cell(every, "vector", "knn-40").metadata("privatize")["task"]["params"] == {}
