"""Codes by envelope, from people and a registry: what is sent, and what is refused."""

import hashlib
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.cli import app
from curvote.intake.admission import RefusedEnvelope
from curvote.intake.box import Intake
from curvote.intake.inbox import accept_inbox
from curvote.ledger.account import POPULATION
from curvote.ledger.book import Ledger
from curvote.messages.message import parse_message, parse_messages
from curvote.pipeline.release.publication import server_key
from curvote.pipeline.store.artifacts import artifact
from curvote.systems.labels.messages import Task
from curvote.wire import signing
from curvote.wire.envelope import issue_record_invitations, read_envelope, seal_message
from curvote.wire.signing import open_signed
from tests.exchange import NAME, Server
from tests.hospitals import take
from tests.registry import (
    ALONE,
    CLASSES,
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
    assert reason(steward, "privatize") == f"blocked: waits for codes: 0 of {N}"
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
    assert reason(made, "privatize") == "blocked: waits for codes: 0 of 12"
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
        ({"clients": {"train": 5}}, "leave clients out"),
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


def _signed(given: Server) -> Task:
    document = open_signed(given.published("code")[0].read_bytes()).document
    return Task.from_json(document["task"])


def test_the_intake_takes_one_possible_code_a_record(steward: Server) -> None:
    """The second, a record that is unknown or another's, a code that cannot be."""
    task, invited = _signed(steward), [*invitations(steward).values()]
    first, second, third = invited[:3]
    good = _code(task)
    odd = [good + 1] * 9 if isinstance(good, int) else [*good, 0]
    impossible = (odd, -1, 2.0, [256], True)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("unknown record", {"record": "p-x", "code": good}),
        ("another record", {"record": first.record, "code": good}),
        ("impossible message", {"record": [], "code": good}),
        ("impossible message", {"code": good}),
        *(
            ("impossible message", {"record": second.record, "code": code})
            for code in impossible
        ),
    ]

    def answer(invitation: Any, values: dict[str, Any] | None = None) -> str:
        """Return why the intake refuses an answer, "" where it takes it."""
        values = values or {"record": invitation.record, "code": good}
        try:
            intake.take(seal_message(invitation, values), parse_message)
        except RefusedEnvelope as error:
            return str(error.reason)
        return ""

    with Intake(steward.project.intake) as intake:
        assert [answer(first), answer(first)] == ["", "used invitation"]
        assert [answer(second, values) for _, values in wrong] == [w for w, _ in wrong]
        assert answer(second) == ""
        (found,) = intake.rounds()
        assert found.accepted == 2
        assert answer(replace(third, key="0" * 64)) == "wrong seal"


def _code(task: Task) -> Any:
    """Return a code of the first class."""
    drawn = task.noise().randomize(np.zeros(1, dtype=np.int64), SeededEntropy(0))
    return drawn[0].tolist()


def test_a_record_is_answered_once_whatever_invitation_came(
    tmp_path: Path, steward: Server
) -> None:
    """Somebody who was invited twice has one code, and nothing of the other stays."""
    task = _signed(steward)
    twice = issue_record_invitations(
        task, ["p-0"], "ab" * 32
    ) + issue_record_invitations(task, ["p-0"], "ab" * 32)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for each in twice:
        data = seal_message(each, {"record": "p-0", "code": _code(task)})
        (inbox / each.file_name).write_bytes(data)
    with Intake(tmp_path / "intake.sqlite") as intake:
        given = {"pipeline": "p", "needed": 1, "invitations": twice}
        intake.open_round("one", task=task, **given)
        done = accept_inbox(intake, inbox, tmp_path / "quarantine", parse_messages)
    assert (done.accepted, done.refused) == (1, {"record answered": 1})
    assert [*tmp_path.glob("quarantine/*")] == []
    assert [*inbox.iterdir()] == []


def test_refusals_of_a_label_tell_nobody_but_its_owner(
    tmp_path: Path, steward: Server
) -> None:
    """A class that the task does not know: said, nothing reserved, nothing written."""
    invited = invitations(steward)
    person = Keeper.at(tmp_path / "me", steward)
    person.invited(invited["p-0"])
    assert "label is 'lo'" in person.refusal(person.label(label="lo"))
    assert "agree to low/high only" in person.refusal(
        person.label(label="low", classes="low,high")
    )
    told(person.label("--json", label="low", classes="high,mid,low"))
    (before,) = person.envelopes()
    again = told(person.label("--json", label="high"))
    assert (again["new"], person.envelopes()) == (False, [before])
    assert len(person.entries()) == 1
    assert person.entries()[0].facts["record"] == "p-0"
    person.invited(invited["p-1"])  # another record costs the same person more
    assert "no room" in str(person.label(label="low").exception)
    assert len(person.entries()) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"encoder": "none"}, "encoder"),
        ({"epsilon": 0}, "above 0"),
        ({"classes": ["low", "low"]}, "class"),
        ({"classes": ["low", "mid, high"]}, "no single word"),
        ({"params": {"omega": 2.5}}, "omega"),
        ({"params": {"size": 2}}, "size"),
        ({"encoder": "rr_with_prior", "params": {}}, "rr_with_prior"),
    ],
)
def test_a_task_is_judged_before_the_label_is_looked_at(
    tmp_path: Path, steward: Server, change: dict[str, Any], words: str
) -> None:
    """The same refusal whatever the label is, even if it is none of the classes."""
    person = Keeper.at(tmp_path / "me", steward)
    person.invited(invitations(steward)["p-0"])
    document = open_signed((person.root / "task.json").read_bytes()).document
    changed = document | {"task": document["task"] | change}
    data = server_key(steward.project).sign(changed)
    (person.root / "task.json").write_bytes(data)
    said = {person.refusal(person.label(label=each)) for each in ("low", "what")}
    assert len(said) == 1
    assert words in said.pop()


def test_invitations_and_commands_must_fit(tmp_path: Path, steward: Server) -> None:
    """Of another server or task, without a record; a curve is asked by another one."""
    person = Keeper.at(tmp_path / "me", steward)
    good = invitations(steward)["p-0"]
    for other, words in (
        (replace(good, signer="0" * 64), "signed the task"),
        (replace(good, task="0" * 64), "different rounds"),
        (replace(good, record=None), "public record"),
        (replace(good, seal_to="0" * 64), "sealed to another key"),
    ):
        person.invited(other)
        assert words in person.refusal(person.label(label="low"))
    for given in ({"label": None}, {"table": "x.csv"}, {"invitation": None}):
        changes = {"label": "low"} | given
        assert "give --invitation and --label" in person.refusal(
            person.label(**changes)
        )


def test_every_problem_of_a_registrys_table_is_told_at_once(
    registry: Keeper, table: pd.DataFrame
) -> None:
    """With its lines; nothing is reserved."""
    labels = labels_of(table)[ALONE:].reset_index(drop=True)
    wrong = labels.copy()
    wrong.loc[1, "label"] = "huge"
    wrong.loc[2, "label"] = ""
    wrong.loc[3, "record"] = wrong.loc[0, "record"]
    wrong.loc[4, "record"] = ""
    said = registry.refusal(registry.table(wrong))
    for words in (
        "label: huge is none of low/mid/high, in line 3.",
        "label: nothing in line 4.",
        "record: an id that stood there before in line 5.",
        "record: nothing in line 6.",
    ):
        assert words in said
    assert "no column 'record'" in registry.refusal(
        registry.table(labels.rename(columns={"record": "who"}))
    )
    assert "none of the table's records" in registry.refusal(
        registry.table(labels.assign(record=[f"q-{i}" for i in range(len(labels))]))
    )


def test_a_registry_goes_on_where_it_stopped(
    registry: Keeper, steward: Server, table: pd.DataFrame
) -> None:
    """Repeats spend nothing, new rows are sent, what cannot be is noted."""
    labels = labels_of(table)
    first = told(registry.table(labels[:14], "--json"))
    assert (first["records"], first["before"]) == (10, 0)
    assert len(first["notes"]) >= 2
    kept = registry.envelopes()
    moved = registry.root / "sent"
    registry.outbox.rename(moved)  # they were carried away
    again = told(registry.table(labels, "--json"))
    assert (again["records"], again["before"]) == (N - ALONE - 10, 10)
    assert len(registry.envelopes()) == N - ALONE - 10
    assert not set(kept) & set(registry.envelopes())
    third = told(registry.table(labels.assign(label=CLASSES[0]), "--json"))
    assert (third["new"], third["before"]) == (False, N - ALONE)
    assert "no room" in str(registry.table(labels, "--new-release").exception)
    assert len(registry.entries()) == N - ALONE


def test_a_registry_takes_one_file_of_invitations(
    tmp_path: Path, steward: Server, table: pd.DataFrame
) -> None:
    """As the server wrote it; a second one about a record is refused."""
    keeper = Keeper.at(tmp_path / "keeper", steward)
    _, secret = steward.published("code")
    lines = secret.read_text().splitlines()
    other = json.dumps(json.loads(lines[0]) | {"id": os.urandom(16).hex()})
    (tmp_path / "two.jsonl").write_text("\n".join([*lines, other]) + "\n")
    labels = labels_of(table)
    said = keeper.refusal(keeper.table(labels, invitations=tmp_path / "two.jsonl"))
    assert "about record p-0" in said
    (tmp_path / "bad.jsonl").write_text(lines[0] + "\n{}\n")
    said = keeper.refusal(keeper.table(labels, invitations=tmp_path / "bad.jsonl"))
    assert "line 2: not an invitation" in said
    (tmp_path / "none").mkdir()
    said = keeper.refusal(keeper.table(labels, invitations=tmp_path / "none"))
    assert "holds no invitation" in said
    done = told(keeper.table(labels, "--json", invitations=secret))
    assert done["records"] == N


def test_a_ledger_is_a_persons_or_a_registrys(
    tmp_path: Path, registry: Keeper, steward: Server, table: pd.DataFrame
) -> None:
    """A label that counts for somebody else would be spent twice without a trace."""
    told(registry.table(labels_of(table), "--json"))
    registry.invited(invitations(steward)["p-1"])
    result = registry.label(label="low")
    assert isinstance(result.exception, UserError)
    assert "counts for many records" in str(result.exception)
    person = Keeper.at(tmp_path / "me", steward)
    person.invited(invitations(steward)["p-0"])
    told(person.label("--json", label="low"))
    for each in [*invitations(steward).values()][1:4]:
        person.invited(each, f"invitations/{each.file_name}")
    result = person.table(labels_of(table))
    assert "other people's records need another" in str(result.exception)
    assert len(person.entries()) == 1
