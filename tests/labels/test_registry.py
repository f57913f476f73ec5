"""Codes by envelope: people with a label each, and a registry with a table of them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.cli import app
from curvote.ledger.account import POPULATION
from curvote.ledger.book import Ledger
from curvote.pipeline.store.artifacts import artifact
from curvote.wire import signing
from curvote.wire.envelope import read_envelope
from tests.exchange import NAME, Server
from tests.hospitals import take
from tests.registry import (
    ALONE,
    Keeper,
    N,
    invitations,
    labels_of,
    people,
    server,
    told,
)


def reason(given: Server, stage: str) -> str:
    """Return what a plan says of a stage."""
    (step,) = (s for s in given.plan().steps if s.stage.name == stage)
    return f"{step.action}: {step.reason}"


def _exchange(
    root: Path, steward: Server, table: pd.DataFrame, alone: int
) -> list[Keeper]:
    """Let the first people and a registry of the others answer, and send it all."""
    invited, labels = invitations(steward), labels_of(table)
    keepers = []
    for record, label in labels[:alone].itertuples(index=False):
        person = Keeper.at(root / record, steward)
        person.invited(invited[record])
        done = told(person.label("--json", label=label))
        assert (done["record"], done["epsilon"], done["new"]) == (record, 2, True)
        keepers.append(person)
    registry = Keeper.at(root / "registry", steward)
    for record in labels["record"][alone:]:
        registry.invited(invited[record], f"invitations/{invited[record].file_name}")
    done = told(registry.table(labels[alone:], "--json"))
    assert (done["records"], done["before"]) == (len(labels) - alone, 0)
    for each in (*keepers, registry):
        each.send(steward)
    return [*keepers, registry]


def _joined(steward: Server, keepers: list[Keeper], table: pd.DataFrame) -> None:
    """Each record once, beside its features; what was sent, and nothing else."""
    plan, record = steward.run()
    assert record.status == "completed"
    sent = [
        read_envelope(data).payload for each in keepers for data in each.envelopes()
    ]
    steps = {step.stage.name: step for step in plan.steps}
    stored = artifact(steward.project, "privatize", steps["privatize"].key)
    codes = stored.columns("codes", (0,))
    found = {
        str(name): np.ravel(code).tolist()
        for name, code in zip(codes["record"], codes["code"], strict=True)
    }
    assert found == {m["record"]: np.ravel(m["code"]).tolist() for m in sent}
    assert sorted(found) == sorted(table["person"])


def test_people_and_a_registry_send_one_code_each(
    tmp_path: Path, steward: Server, table: pd.DataFrame
) -> None:
    """Published, sent, joined by record; a second learner spends nothing."""
    assert reason(steward, "privatize") == f"blocked: codes 0 of {N}"
    keepers = _exchange(tmp_path, steward, table, ALONE)
    assert take(steward) == {"accepted": N, "refused": {}, "left": {}}
    _joined(steward, keepers, table)
    assert [len(each.entries()) for each in keepers] == [1] * ALONE + [N - ALONE]
    with Ledger(keepers[-1].ledger) as ledger:
        spent = ledger.spent(POPULATION)
        assert sorted(spent.clients) == sorted(table["person"][ALONE:])
        assert set(spent.epsilon) == {2.0}
    assert reason(steward, "privatize") == "reuse: round closed"
    other = server(steward.project.root, table, learners=["ridge"])
    assert [s.stage.name for s in other.plan().steps_to_run()] == ["train"]
    assert other.run()[1].status == "completed"


def test_a_model_of_text_and_numbers_says_new_records(
    tmp_path: Path, steward: Server, table: pd.DataFrame
) -> None:
    """Columns by name, texts as they stand; what is of no use stays empty."""
    _exchange(tmp_path, steward, table, 0)
    take(steward)
    steward.run()
    new, said = people(60, seed=1), tmp_path / "said.csv"
    shown = new[["town", "person", "chol", "age"]]
    result = _predict(steward, tmp_path, shown)
    assert result.exit_code == 0, result.exception
    written = pd.read_csv(said)
    assert list(written) == ["town", "person", "chol", "age", "prediction"]
    assert (written["prediction"] == new["label"]).mean() > 0.6
    result = _predict(steward, tmp_path, shown.drop(columns="age"))
    assert "there is no column 'age'" in str(result.exception)
    wrong = shown.astype({"chol": object, "age": object})
    wrong.loc[[1, 2], "town"], wrong.loc[3, "chol"] = ["east", None], "many"
    wrong.loc[4, "chol"] = None
    words = _predict(steward, tmp_path, wrong).stderr
    assert "town is none of the categories north, south in line 3" in words
    assert "chol is not a finite number in line 5" in words
    assert "2 of 60 rows have no answer" in words
    empty = np.flatnonzero(pd.read_csv(said)["prediction"].isna())
    assert empty.tolist() == [1, 3]


def _predict(given: Server, root: Path, table: pd.DataFrame) -> Result:
    table.to_csv(root / "new.csv", index=False)
    words = ["predict", NAME, "--project", str(given.project.root)]
    words += ["--table", str(root / "new.csv"), "--out", str(root / "said.csv")]
    return CliRunner().invoke(app.app, words)


def test_better_public_columns_ask_for_no_new_code(
    tmp_path: Path, steward: Server, table: pd.DataFrame
) -> None:
    """The file is read anew, records without a code are said by the model."""
    _exchange(tmp_path, steward, table, 1)
    take(steward)
    assert steward.run()[1].status == "completed"
    more = people(N + 5).assign(age=lambda t: t["age"] + 1)
    changed = server(steward.project.root, more)
    plan, record = changed.run()
    actions = {step.stage.name: step.action for step in plan.steps}
    assert (actions["ingest"], actions["privatize"]) == ("run", "reuse")
    assert record.status == "completed"


@pytest.mark.faults
def test_two_hundred_people_and_a_registry(tmp_path: Path) -> None:
    """The same with as many as the promise says."""
    table = people(500)
    made = server(tmp_path / "server", table)
    made.run()
    keepers = _exchange(tmp_path, made, table, 200)
    assert take(made) == {"accepted": 500, "refused": {}, "left": {}}
    _joined(made, keepers, table)
    assert Counter(len(each.entries()) for each in keepers) == {1: 200, 300: 1}


def test_a_round_may_be_sealed_and_wait_for_fewer(
    tmp_path: Path, table: pd.DataFrame
) -> None:
    """Who carries envelopes learns no record; those who are late have no code."""
    waits = {"sealed": True, "min_codes": 12}
    made = server(tmp_path / "server", table, intake=waits)
    made.run()
    assert reason(made, "privatize") == "blocked: codes 0 of 12"
    invited, registry = invitations(made), Keeper.at(tmp_path / "registry", made)
    for record, each in [*invited.items()][:12]:
        assert each.seal_to is not None
        registry.invited(each, f"invitations/{record}.json")
    assert told(registry.table(labels_of(table), "--json"))["records"] == 12
    for data in registry.envelopes():
        assert data.startswith(b'{"sealed":')
    assert len({len(data) for data in registry.envelopes()}) <= 2  # p-9 and p-10
    registry.send(made)
    assert take(made)["accepted"] == 12
    assert made.run()[1].status == "completed"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"intake": {"online": True}}, "wait for them"),
        ({"clients": {"train": 5}}, "nobody plays a role"),
        ({"labels": {"rounds": 2}}, "studies only"),
        ({"labels": {"encoder": "rr_with_prior"}}, "rounds: 2"),
        ({"epsilon": [1, 2]}, "exactly one"),
        ({"intake": None}, "write intake: {}"),
    ],
)
def test_what_cannot_be_asked_by_envelope_is_said_before(
    tmp_path: Path, table: pd.DataFrame, changes: dict[str, Any], words: str
) -> None:
    """By the plan, with its reason."""
    with pytest.raises(UserError, match=words):
        server(tmp_path / "server", table, **changes).plan()


def test_the_digest_is_that_of_the_published_text(steward: Server) -> None:
    """So nobody needs a copy of how Python writes numbers; as docs/envelope.md says."""
    line = json.loads(steward.published("code")[0].read_bytes())
    document = signing.from_base64url(line["payload"])
    task = document[document.index(b'"task":') + len(b'"task":') : -1]
    digest = hashlib.sha256(task).hexdigest()
    assert {each.task for each in invitations(steward).values()} == {digest}
