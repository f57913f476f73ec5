"""Protocol `pilot`: two rules of disjoint clients, others judge, one is taken."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.chain.lookup import find_system
from curvote.checks.examples import example_task
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.messages.message import ClientData, learning_messages, message_of
from curvote.messages.roles import split_roles
from curvote.pipeline.run import results
from curvote.systems.pilot.messages import MESSAGES
from tests import plain, production
from tests.memory import Made, Memory, do, replicates, value

HUGE, D, REPLICATES = 200.0, 3, 2
SIZES = {"public": 0, "train": 500, "vote": 1500, "test": 800}
PARAMS: dict[str, Any] = {
    "source.balance": None,
    "seed": 3,
    "clients": SIZES,
    "source.groups": None,
    "project.judge": "rescaled",
    "epsilon": HUGE,
    "replicates": REPLICATES,
    "counts.bins": 3,
}
PLAIN = {"basis": "bspline", "size": 4}


def chain(bent: bool) -> Made:
    """Run every stage; the class is a side of the first number, or its middle bin."""
    rows = []
    for seed in range(REPLICATES):
        z = np.random.default_rng(seed).standard_normal((sum(SIZES.values()), D))
        label = (np.abs(z[:, 0]) < 0.43 if bent else z[:, 0] > z[:, 1]).astype(int)
        rows.append({"label": label, "z": z, "coefficients": z})
    encoding = Encoding(identity(D), "none").to_json()
    facts = {"d": D, "encoding": encoding, "classes": ["no", "yes"], "roughness": []}
    found: dict[str, Any] = {"project": Memory.of(facts, encoded=rows)}
    for stage in find_system("pilot").stages[2:]:
        found[stage.name] = do(stage, found, PARAMS, replicates(REPLICATES))
    return found


def test_each_client_is_asked_once_and_everybody_is() -> None:
    """Whatever their number, in whichever roles."""
    for train, vote in ((1, 4), (60, 80), (7, 0), (500, 1513)):
        roles = {"train": np.arange(train), "vote": np.arange(train, train + vote)}
        asked = [m.senders.rows(roles) for m in learning_messages("pilot").values()]
        assert np.array_equal(np.sort(np.concatenate(asked)), np.arange(train + vote))


@pytest.mark.parametrize(("bent", "rule"), [(False, "mean"), (True, "counts")])
def test_the_rule_that_is_right_more_often_is_taken(bent: bool, rule: str) -> None:
    """Without noise to speak of; and its utility is its accuracy on others."""
    made = chain(bent)
    tables = made["report"].each("scores"), made["aggregate"].each("ensemble")
    for scores, told in zip(*tables, strict=True):
        assert value(scores, "pilot") == value(scores, rule) < 0.12
        accuracies = [1 - value(scores, name) for name in ("mean", "counts")]
        np.testing.assert_allclose(told["utility"], accuracies, atol=0.12)
        assert told["weight"].sum() == 1


def bent_tasks() -> dict[str, dict[str, Any]]:
    """Return what a task must not say."""
    params = dict(example_task("pilot", "vote", 1.0).params)
    lines = example_task("mrma", "vote", 1.0).candidates  # eight of them
    return {
        "no table": {"params": {}},
        "other cells": {"params": params | {"score": [[0.0, 1.0]] * 4}},
        "no line": {"candidates": None},
        "more rules": {"candidates": lines},
        "beyond": {"params": params | {"feature": [[9, 9]] * 4}},
    }


@pytest.mark.parametrize("wrong", bent_tasks().values(), ids=bent_tasks())
def test_another_task_is_refused(wrong: dict[str, Any]) -> None:
    """Before anything is drawn, whatever the record."""
    task = example_task("pilot", "vote", 1.0)
    message_of(task).check_task(task)
    with pytest.raises(UserError):
        message_of(task).check_task(replace(task, **wrong))


def test_a_judgement_is_about_one_rule_only() -> None:
    """The line has no part in what is said of the table, nor the other way round."""
    task = example_task("pilot", "vote", 1.0)
    z = np.random.default_rng(1).normal(size=(40, 4))
    flat = replace(task, params={**task.params, "score": [[0.0] * 3] * 4})
    for rule, same in ((0, True), (1, False)):
        data = ClientData(z, z, np.ones(40), np.full(40, rule))
        scores = [MESSAGES["vote"].decisions(t, data) for t in (task, flat)]
        assert np.array_equal(*scores) == same


def test_what_is_kept_is_what_was_taken(tmp_path: Path) -> None:
    """Of a study: the model errs as the scores say, and the notes name the rule."""
    written = plain.of("pilot", given=plain.TINY | {"project": PLAIN})
    project = plain.write(tmp_path, tiny=written | {"epsilon": [8], "replicates": 2})
    record = plain.run(project)
    (view,) = results.final_views(project, record)
    clients, people = view.columns("ingest", "clients"), view.setting("clients")
    test = split_roles(view.setting("seed"), 0, len(clients["label"]), people)["test"]
    model = results.final_model(project, record, view.cell)
    told = model.predict(clients["curve"][test])
    error = np.mean(told != model.classes_[clients["label"][test]])
    assert error == value(view.columns("report", "scores"), "pilot")
    (note,) = find_system("pilot").notes([view])
    assert note.endswith(("counts taken", "mean taken"))


def test_a_release_asks_three_groups_once(tmp_path: Path) -> None:
    """A repeated run gives the same bytes and spends nothing."""
    project = production.write(tmp_path, protocol="pilot", project=PLAIN)
    made = production.run(project)
    before = production.bytes_of(project, made)
    assert {*before} == {"privatize", "answer", "evaluate"}
    assert production.bytes_of(project, production.run(project)) == before
    assert [entry.n_clients for entry in production.confirmed(project)] == [28, 84, 28]
