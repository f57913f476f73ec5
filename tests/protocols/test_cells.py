"""Protocols `counts`, `stump` and `tree`: one noised cell and class a client."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.chain.lookup import find_system
from curvote.checks.examples import example_task as example
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.mechanisms.randomized_response import KRR
from curvote.messages.message import ClientData, message_of
from curvote.messages.roles import split_roles
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.run import results
from curvote.pipeline.store.arrow import to_arrow
from curvote.systems.cells.messages import MAX_ANSWERS, true_answers
from curvote.systems.cells.system import ANSWERS, QUESTIONS, SCORECARD
from curvote.wire.task import Task
from tests import plain, production
from tests.exchange import FAR, NAME, Server, answers
from tests.federation.test_exchange import blocked, some_clients
from tests.memory import Made, Memory, do, replicates, value
from tests.noise import SEED

EVERY = ("counts", "stump", "tree")
HUGE, D = 200.0, 4
SIZES = {"public": 0, "train": 900, "vote": 2100, "test": 1000}
N = sum(SIZES.values())
PARAMS: dict[str, Any] = {
    "seed": 3,
    "clients": SIZES,
    "source.groups": None,
    "epsilon": HUGE,
    "replicates": 3,
    "counts.bins": 3,
    "stump.thresholds": 1,
    "tree.cells": 8,
}
every_protocol = pytest.mark.parametrize("name", EVERY)


def project(n_classes: int = 2) -> Memory:
    """Return clients whose class is a bin of the second number, which no line tells."""
    rows = []
    for seed in range(PARAMS["replicates"]):
        z = np.random.default_rng(seed).standard_normal((N, D))
        middle = np.abs(z[:, 1]) < 0.43
        label = middle if n_classes == 2 else middle + 2 * (z[:, 0] > 0)
        rows.append({"label": label.astype(int), "z": z, "coefficients": z + 9})
    encoding = Encoding(identity(D), "none").to_json()
    facts = {"d": D, "encoding": encoding, "classes": [*map(str, range(n_classes))]}
    return Memory.of(facts | {"roughness": []}, encoded=rows)


def chain(name: str, made: Memory | None = None, **changes: Any) -> Made:
    """Run every stage that follows the encoding."""
    found = {"project": made or project()}
    for stage in find_system(name).stages[2:]:
        values = PARAMS | changes
        found[stage.name] = do(stage, found, values, replicates(values["replicates"]))
    return found


def known(n: int, value: float = 0.3, label: float = 1.0) -> ClientData:
    """Return n clients with the same record."""
    z = np.full((n, D), value)
    return ClientData(z, z, np.full(n, label))


# ------------------------------------------------------------------------ the message
@every_protocol
def test_which_question_is_answered_follows_no_record(name: str) -> None:
    """From the same words, clients with other records answer the same questions."""
    task = example(name, "report", 1.0)
    one, other = (
        message_of(task).draw(task, who, SeededEntropy(SEED))["question"]
        for who in (known(500), known(500, -0.9, 0.0))
    )
    np.testing.assert_array_equal(one, other)
    asked = np.bincount(one, minlength=len(task.params["threshold"]))
    assert asked.min() > 0.6 * 500 / len(asked)


def test_questions_and_cells_are_drawn_apart() -> None:
    """The noise of an answer does not go along with the question (chi-square test)."""
    task = replace(example("counts", "report", 1.0))
    sent = message_of(task).draw(task, known(40_000), SeededEntropy(SEED))
    table = np.zeros((D, 6))
    np.add.at(table, (sent["question"], sent["answer"]), 1)
    assert chi2_contingency(table).pvalue > 1e-6


def bent() -> dict[str, dict[str, Any]]:
    """Return what a task must not say."""
    params = dict(example("counts", "report", 1.0).params)
    rows = MAX_ANSWERS // 2
    wide = {
        name: [list(range(rows)) if name == "of" else [0] * rows] for name in params
    }
    return {
        "mechanism": {"mechanism": "laplace"},
        "more": {"params": params | {"share": 1}},
        "less": {"params": {k: v for k, v in params.items() if k != "of"}},
        "ragged": {"params": params | {"threshold": [[0.0]]}},
        "beyond": {"params": params | {"feature": [[D, D]] * D}},
        "later": {"params": params | {"of": [[1, 0]] * D}},
        "infinite": {"params": params | {"threshold": [[0.0, np.inf]] * D}},
        "wide": {"params": wide},
    }


@pytest.mark.parametrize("wrong", bent().values(), ids=bent())
def test_another_task_is_refused(wrong: dict[str, Any]) -> None:
    """Before anything is drawn, whatever the record."""
    task = example("counts", "report", 1.0)
    message_of(task).check_task(task)
    with pytest.raises(UserError):
        message_of(task).check_task(replace(task, **wrong))


@every_protocol
def test_a_task_comes_back_from_json(name: str) -> None:
    """With the very questions, and one digest."""
    task = example(name, "report", 1.0, 5)
    again = Task.from_json(json.loads(json.dumps(task.to_json())))
    assert again.digest() == task.digest()
    who = known(50)
    words = [true_answers(t, who, np.zeros(50, dtype=np.int64)) for t in (task, again)]
    np.testing.assert_array_equal(*words)


# ------------------------------------------------------------------------- the chain
@every_protocol
def test_questions_come_from_no_client(name: str) -> None:
    """They are the same where there is no client to read, and for every epsilon."""
    stage = find_system(name).stages[2]
    assert "epsilon" not in stage.params
    nobody = Memory(project().metadata)
    found = do(stage, {"project": nobody}, PARAMS, replicates(PARAMS["replicates"]))
    np.testing.assert_equal(found.tables, chain(name)["train"].tables)


@pytest.mark.parametrize(
    ("name", "most", "changes"),
    [("counts", 0.02, {}), ("stump", 0.36, {}), ("tree", 0.25, {"tree.cells": 200})],
)
def test_what_no_line_tells_is_learnt(
    name: str, most: float, changes: dict[str, Any]
) -> None:
    """Without noise to speak of; a stump can have one threshold only."""
    for rows in chain(name, **changes)["report"].each("scores"):
        assert value(rows, name) <= most
        assert value(rows, "majority") > 0.3


def test_several_classes_are_learnt() -> None:
    """Four classes; and recall and confusion are told of each."""
    made = chain("counts", project(4), **{"counts.bins": 6})
    for rows in made["report"].each("scores"):
        assert value(rows, "counts") < 0.05
    assert made["report"].tables["confusion"]


@every_protocol
def test_the_server_s_tables_hold_no_client(name: str) -> None:
    """They keep their contracts, which know no id, and hold no client's number."""
    made, stages = chain(name, epsilon=1.0), ("train", "privatize", "aggregate")
    secret = made["project"].columns("encoded", (0,))["z"]
    for stage, table in zip(stages, (QUESTIONS, ANSWERS, SCORECARD), strict=True):
        columns = made[stage].columns(table.name, (0,))
        assert to_arrow(table, ("replicate",), (0,), columns).num_rows
        for values in columns.values():
            assert not np.isin(secret, np.ravel(values).astype(float)).any()


def test_the_word_is_kept_as_often_as_the_mechanism_says() -> None:
    """Cell and class together: one word of six, for the whole epsilon."""
    task = example("counts", "report", 2.0)
    who = known(20_000)
    sent = message_of(task).draw(task, who, SeededEntropy(SEED))
    kept = (sent["answer"] == true_answers(task, who, sent["question"])).mean()
    expected = float(KRR(epsilon=2.0, n_classes=6).p)
    assert abs(kept - expected) < 6 * 0.5 / np.sqrt(20_000)


PLAIN = {"basis": "bspline", "size": 4}


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({"counts": {"bins": 1}}, "bins"),
        ({"counts": {"bins": 3000}}, "words"),
        ({"stump": {"thresholds": 2}}, "stump"),
    ],
)
def test_settings_out_of_range_are_refused(
    tmp_path: Path, entry: dict[str, Any], named: str
) -> None:
    """Too few and too many bins, and a section of another protocol."""
    written = plain.of("counts", given=plain.TINY | {"project": PLAIN}) | entry
    with pytest.raises(UserError, match=named):
        PipelinesFile(plain.write(tmp_path, tiny=written)).configure_pipeline(
            "tiny", ()
        )


def test_what_is_kept_is_what_was_scored(tmp_path: Path) -> None:
    """Of all three side by side: the model errs on test clients as the scores say."""
    short = [{"name": "counts", "bins": 4}, "stump", {"name": "tree", "cells": 4}]
    written = plain.of(*EVERY, given=plain.TINY | {"project": PLAIN})
    tiny = written | {"protocols": short, "epsilon": 8, "replicates": 2}
    project = plain.write(tmp_path, tiny=tiny)
    record = plain.run(project)
    assert set(EVERY) <= set(results.replicate_scores(project, record)["method"])
    sizes = {"counts": (4, 8), "stump": (1, 4), "tree": (1, 8)}
    for view in results.final_views(project, record):
        name = view.cell["protocol"]
        assert view.columns("aggregate", "scorecard")["score"].shape == sizes[name]
        clients = view.columns("ingest", "clients")
        seed, people = view.setting("seed"), view.setting("clients")
        test = split_roles(seed, 0, len(clients["label"]), people)["test"]
        model = results.final_model(project, record, view.cell)
        told = model.predict(clients["curve"][test])
        error = np.mean(told != model.classes_[clients["label"][test]])
        assert error == value(view.columns("report", "scores"), name)


@every_protocol
def test_every_client_releases_once(tmp_path: Path, name: str) -> None:
    """A repeated run gives the same bytes and spends nothing."""
    given = {"protocol": name, "project": PLAIN, "clients": {"train": 60, "vote": 80}}
    project = production.write(tmp_path, **given)
    made = production.run(project)
    before = production.bytes_of(project, made)
    again = production.run(project)
    assert {step.action for step in again.steps} == {"reuse"}
    assert production.bytes_of(project, again) == before
    assert len(production.confirmed(project)) == 1


def test_answers_by_envelope(tmp_path: Path) -> None:
    """Clients elsewhere are asked the published questions; then there is a model."""
    given = {"protocol": "counts", "project": PLAIN | {"rescale": "standard"}}
    far = production.changed(FAR, **given, clients={"train": 20})
    server = Server(plain.write(tmp_path / "server", **{NAME: far}))
    assert blocked(server) == "waits for reports: 0 of 20"
    curves, labels = some_clients(20, 1)
    server.take(answers(server, "report", curves, labels, tmp_path / "sent"))
    plan, record = server.run()
    assert not plan.blocked_steps()
    ((cell, told),) = results.production_outcomes(server.project, record).items()
    assert told == {"reports": 20}
    model = results.final_model(server.project, record, cell)
    assert set(model.predict(curves)) <= {"-1", "+1"}
