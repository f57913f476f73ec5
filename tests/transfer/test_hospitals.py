"""The whole exchange of four hospitals that share nothing, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.cli import app
from curvote.cli.commands import ledger as cli_ledger
from curvote.pipeline.run.planner import Plan
from curvote.wire.envelope import Invitation, read_envelope, seal_message
from curvote.wire.signing import open_signed
from tests.exchange import NAME, Server
from tests.hospitals import FORM, NAMES, REMOTE, Hospital, N, steward, table, take
from tests.rounds import quiet


def reasons(plan: Plan, stage: str) -> dict[str, str]:
    """Return what a plan says of each step of a stage, by its server."""
    found = [step for step in plan.steps if step.stage.name == stage]
    return {str(s.cell["server"]): f"{s.action}: {s.reason}" for s in found}


def test_four_hospitals_that_share_nothing_give_one_a_classifier(
    tmp_path: Path,
) -> None:
    """Published, released, taken, combined, and said of new patients."""
    server = steward(tmp_path / "steward")
    plan, _ = server.run()
    waiting = f"{WAITS} 0 of 4"
    assert reasons(plan, "privatize") == dict.fromkeys(NAMES, waiting)
    task = open_signed(server.published("release")[0].read_bytes()).document["task"]
    assert [*task["servers"]] == list(NAMES)
    assert task["classes"] == ["no", "yes"]
    hospitals = [Hospital.at(tmp_path, name) for name in NAMES]
    for each in hospitals:
        _answer(each, server)
    assert take(server) == {"accepted": 4, "refused": {}, "left": {}}
    plan, record = server.run()
    assert record.status == "completed"
    _predict(server, tmp_path)
    _any_target(server)
    _another_server(tmp_path, server)
    _another_budget(server, hospitals)


def _answer(home: Hospital, server: Server) -> None:
    """Release once; a repeat, with whatever table, returns the same for nothing."""
    home.init("--cap", "2", "--cap-delta", "1e-3")
    home.receive(server)
    done = home.released("--classes", "yes,no")
    assert (done["server"], done["records"], done["new"]) == (home.name, N, True)
    assert (done["epsilon"], done["delta"], done["left"]) == (2, N**-2, 0)
    before = home.state()
    table(home.name, N + 5).to_csv(home.root / "patients.csv", index=False)
    again = home.released()
    assert again | {"new": True, "notes": []} == done
    assert not again["new"]
    assert home.state() == before
    (row,) = home.show()
    known = home.name, N, 2.0, N**-2
    assert tuple(row[k] for k in ("server", "records", "epsilon", "delta")) == known
    assert set(read_envelope(home.send(server)).payload) == {"server", "n", "values"}


def _predict(server: Server, root: Path) -> None:
    """Columns are matched by name, and stay; problems come all at once."""
    new, said = table("new", 200), root / "said.csv"
    new[["age", "patient", "chol"]].to_csv(root / "new.csv", index=False)
    words = ["predict", NAME, "--project", str(server.project.root)]

    def predict(file: str) -> Any:
        given = ["--table", str(root / file), "--out", str(said)]
        return CliRunner().invoke(app.app, [*words, *given])

    assert predict("new.csv").exit_code == 0
    told = pd.read_csv(said)
    assert list(told) == ["age", "patient", "chol", "prediction"]
    assert (told["prediction"] == new["disease"]).mean() > 0.85
    said.unlink()
    (root / "bad.csv").write_text("prediction,chol\n1,200\n,many\n")
    assert str(predict("bad.csv").exception).count("bad.csv: ") == 2
    assert not said.exists()


def _any_target(server: Server) -> None:
    """The same four releases serve another target: nobody releases anew."""
    for change in ({"target": "va"}, {"decide": "prior"}):
        plan = steward(server.project.root, **change).plan()
        told = dict.fromkeys(NAMES, "reuse: round closed")
        assert reasons(plan, "privatize") == told
        assert [s.stage.name for s in plan.steps_to_run()] == ["aggregate"]


def _another_server(root: Path, server: Server) -> None:
    """One more is one more release; the four that were made stay what they are."""
    source = REMOTE["source"] | {"servers": ["basel", *NAMES]}
    plan, _ = steward(server.project.root, source=source).run()
    told = dict.fromkeys(NAMES, "reuse: round closed")
    assert reasons(plan, "privatize") == told | {"basel": f"{WAITS} 4 of 5"}
    new = Hospital.at(root, "basel")
    new.init("--cap", "2", "--cap-delta", "1e-3")
    new.receive(server)
    new.released()
    new.send(server)
    assert take(server)["accepted"] == 1
    assert server.run()[1].status == "completed"


def _lines(invitations: Path) -> dict[str, str]:
    lines = invitations.read_text().splitlines()
    return {json.loads(line)["server"]: line for line in lines}


def _another_budget(server: Server, hospitals: list[Hospital]) -> None:
    """Only the one whose budget it is is asked again; the others' files stay valid."""
    _, secret = server.published("release")
    before = _lines(secret)
    plan, _ = steward(server.project.root, epsilon={"cleveland": 0.25}).run()
    told = dict.fromkeys(NAMES, "reuse: round closed")
    assert reasons(plan, "privatize") == told | {"cleveland": f"{WAITS} 3 of 4"}
    after = _lines(secret)
    assert [*after] == [*NAMES[1:], "cleveland"]
    assert {name for name in NAMES if after[name] != before[name]} == {"cleveland"}
    for each in hospitals[1:]:
        each.receive(server)  # the task names another budget of somebody else
        assert each.released()["new"] is False
    cleveland = hospitals[0]
    cleveland.receive(server)
    assert "no room for epsilon 0.25" in cleveland.refusal()
    cap = ["--cap", "2.25", "--ledger", str(cleveland.ledger), "--yes"]
    assert cleveland.client("raise-cap", *cap).exit_code == 0
    (cleveland.root / "outbox").rename(cleveland.root / "sent")
    cleveland.released()
    words = ["show", "--ledger", str(cleveland.ledger)]
    shown = CliRunner().invoke(cli_ledger.app, words).stdout
    assert "2 releases of cleveland cost a record" in shown
    cleveland.send(server)
    assert take(server)["accepted"] == 1
    assert server.run()[1].status == "completed"


WAITS = "blocked: waits for releases:"
SEALED = {"intake": {"sealed": True}}


def test_servers_that_are_asked_together_seal_to_one_key(tmp_path: Path) -> None:
    """One task is published for all, so its key is that of every open round."""
    server = steward(tmp_path / "steward", **SEALED)
    server.run()
    keys = {json.loads(line)["seal_to"] for line in _lines(_secret(server)).values()}
    assert len(keys) == 1
    assert None not in keys
    va = Hospital.at(tmp_path, "va")
    va.init("--cap", "2", "--cap-delta", "1e-3")
    va.receive(server)
    changed = {"epsilon": {"cleveland": 1}}
    plan, _ = steward(server.project.root, **SEALED, **changed).run()
    assert set(reasons(plan, "privatize").values()) == {f"{WAITS} 0 of 4"}
    lines = _lines(_secret(server))
    assert {json.loads(line)["seal_to"] for line in lines.values()} == keys
    va.released()
    assert va.send(server).startswith(b'{"sealed":')
    assert take(server)["accepted"] == 1
    reason = reasons(server.plan(), "privatize")["cleveland"]
    assert reason == f"{WAITS} 1 of 4"


def _secret(server: Server) -> Path:
    return server.published("release")[1]


def test_every_problem_of_a_table_is_told_at_once(home: Hospital) -> None:
    """With its lines; nothing is reserved."""
    (home.root / "patients.csv").write_text(
        "patient,disease,chol\n"
        "a,yes,5.2\n"
        "b,maybe,4.8\n"
        "b,no,6.1\n"
        ",,x\n"
        "e,no,nan\n"
        "f,yes,3.9\n"
    )
    said = home.refusal().splitlines()
    for words in (
        "there is no column 'age'.",
        "chol: no finite number in lines 5, 6.",
        "disease: maybe is none of no/yes, in line 3.",
        "disease: nothing in line 5.",
        "patient: nothing in line 5.",
        "patient: an id that stood there before in line 4.",
    ):
        assert any(words in line for line in said), words
    assert len(said) == 6
    (home.root / "patients.csv").write_text("age,chol,disease,patient\n")
    assert "it has no row" in home.refusal()
    assert "cannot be read" in home.refusal(table=home.root / "none.csv")


def test_a_table_may_be_written_in_other_ways(home: Hospital) -> None:
    """Parquet, labels as numbers, columns in any order, rows without an id."""
    form = home.root / "rows.yaml"
    form.write_text(FORM.replace("id: patient", "id: null"))
    settled = home.client("form", str(form), "--ledger", str(home.ledger))
    assert settled.exit_code == 0, settled.exception
    given = table("cleveland").assign(more="x").drop(columns="patient")
    given["chol"] = given["chol"].mask(given.index < 2, 450)
    given.to_parquet(home.root / "patients.parquet")
    done = home.release("--json", table=home.root / "patients.parquet", id=None)
    assert "chol: 2 of 60 values lie beyond 100 to 400 and are clipped" in done.stderr
    for words in (
        "cleveland sends the number of its records, 60, as it is",
        "one noised release (6 numbers, classes no/yes) about them",
        "delta 0.000277778 (the chance that more comes out)",
        "epsilon 0, delta 0.000722222 of your cap of epsilon 2, delta 0.001 is left",
    ):
        assert words in done.stderr
    told = json.loads(done.stdout)
    assert told["records"] == N
    assert len(told["notes"]) == 1


def test_another_task_is_refused_before_the_table_is_read(
    home: Hospital, server: Server
) -> None:
    """An altered byte; a task that is older, of other bounds, classes or servers."""
    task = home.root / "task.json"
    bent = task.read_bytes().replace(b'"payload":"e', b'"payload":"f')
    (home.root / "bent.json").write_bytes(bent)
    nowhere = home.root / "nowhere.csv"
    said = home.refusal(task=home.root / "bent.json", table=nowhere)
    assert "something was altered" in said
    others: list[dict[str, Any]] = [
        {"number": 2},
        {"features": [["age", 0.0, 90.0], ["chol", 100.0, 400.0]]},
        {"classes": ["no", "maybe"]},
        {"release": "cells", "params": {}},
        {"servers": {"cleveland": [1.0, None]}},
    ]
    for change in others:
        said = home.refusal(task=home.asked(server, **change), table=nowhere)
        assert "the invitation is to task" in said
    other = home.asked(server, servers={"va": [2.0, None]})
    assert "'cleveland'" in home.refusal(task=other, table=nowhere)
    agreed = ["--classes", "no,ill"]
    assert "you agree to no/ill only" in home.refusal(*agreed, table=nowhere)


def test_noise_for_studies_is_neither_asked_for_nor_given(
    tmp_path: Path, home: Hospital, server: Server
) -> None:
    """The published noise protects less than its epsilon says."""
    stated = {"release": "printed", "params": {"bandwidths": [1.0]}}
    other = steward(tmp_path / "other", **stated)
    with pytest.raises(UserError, match="for studies only"):
        other.run()
    task = home.asked(server, **stated)
    assert "for studies only" in home.refusal(task=task)


def test_one_server_releases_once(home: Hospital, server: Server) -> None:
    """Not again with its invitation, nor as another, nor from another ledger."""
    home.client("raise-cap", "--cap", "9", "--ledger", str(home.ledger), "--yes")
    home.released()
    assert "used for another release" in home.refusal("--new-release")
    other = home.root / "other.sqlite"
    home.init("--cap-delta", "1e-3", ledger=other)
    assert "A second ledger cannot answer it" in home.refusal(ledger=other)
    va = replace(home, name="va")
    va.receive(server)
    assert "that of cleveland" in va.refusal()


def test_no_patient_spends_more_than_the_cap(home: Hospital, server: Server) -> None:
    """In epsilon or delta, over all releases that the patient is in."""
    for epsilon, delta in (("1", "1e-3"), ("2", "1e-9")):
        poor = home.root / f"poor-{epsilon}.sqlite"
        home.init("--cap", epsilon, "--cap-delta", delta, ledger=poor)
        said = home.refusal(ledger=poor)
        assert f"your cap is epsilon {epsilon}, delta {float(delta):g} for each" in said
    home.released()
    (home.root / "outbox").rename(home.root / "sent")
    again = steward(server.project.root, epsilon={"cleveland": 0.5})
    again.run()
    home.receive(again)
    mixed = pd.concat([table("cleveland", 1), table("new", N)])
    mixed.to_csv(home.root / "patients.csv", index=False)
    assert "60 of 61 records are new" in home.refusal()
    assert "no room" in home.refusal("--new-people")
    assert "it is patient" in home.refusal(id="age")
    table("new").to_csv(home.root / "patients.csv", index=False)
    assert home.released("--new-people")["left"] == 1.5


def test_n_must_fit_delta(tmp_path: Path) -> None:
    """A delta above 1/n would keep a promise that publishes one patient whole."""
    server = steward(tmp_path / "steward", delta=0.01)
    server.run()
    home = Hospital.at(tmp_path, "va")
    home.init("--cap", "2", "--cap-delta", "0.02")
    table("va", 101).to_csv(home.root / "patients.csv", index=False)
    home.receive(server)
    assert "For a table of 101 at most" in home.refusal()
    table("va", 100).to_csv(home.root / "patients.csv", index=False)
    assert home.released()["delta"] == 0.01
    forged = _forged(home, n=101)
    inbox = server.project.inbox(NAME)
    inbox.mkdir(parents=True)
    (inbox / "forged.json").write_bytes(forged)
    assert take(server)["refused"] == {"impossible message": 1}
    assert "n is 101, which does not fit delta" in _kept(server)


def _forged(home: Hospital, task: str | None = None, **changes: Any) -> bytes:
    """Return an envelope with the hospital's own seal, and something else in it."""
    invited = Invitation.from_json(
        json.loads((home.root / "invitation.json").read_text())
    )
    (envelope,) = (home.root / "outbox").glob("*.json")
    payload = read_envelope(envelope.read_bytes()).payload
    for name, change in changes.items():
        payload[name] = change(payload[name]) if callable(change) else change
    return seal_message(replace(invited, task=task or invited.task), payload)


def _kept(server: Server) -> str:
    """Return the reasons that stand in the quarantine."""
    files = server.project.quarantine(NAME).glob("*.reason.txt")
    return "\n".join(file.read_text() for file in files)


IMPOSSIBLE: list[tuple[str, Any, str]] = [
    ("server", "va", "the invitation is for server cleveland"),
    ("n", 0, "n is 0"),
    ("n", "60", "n: "),
    ("values", lambda v: v[:-1], "5 values came"),
    ("values", lambda v: [*v, 0], "7 values came"),
    ("values", lambda v: [2**52, *v[1:]], "none is above"),
    ("values", lambda v: [0.5, *v[1:]], "values.0"),
]


def test_what_no_honest_server_sends_is_refused_and_nothing_is_lost(
    home: Hospital, server: Server
) -> None:
    """Each with its reason; the honest envelope is then taken as ever."""
    home.released()
    true = home.send(server)
    inbox = server.project.inbox(NAME)
    (envelope,) = inbox.iterdir()
    envelope.unlink()
    for number, (name, change, _) in enumerate(IMPOSSIBLE):
        (inbox / f"{number}.json").write_bytes(_forged(home, **{name: change}))
    place = true.index(b'"payload":"') + 40
    bent = true[:place] + (b"A" if true[place : place + 1] != b"A" else b"B")
    (inbox / "bent.json").write_bytes(bent + true[place + 1 :])
    (inbox / "stale.json").write_bytes(_forged(home, "0" * 64))
    quiet(*inbox.iterdir())
    refused = take(server)["refused"]
    assert refused.pop("impossible message") == len(IMPOSSIBLE)
    assert refused.pop("unknown task") == 1
    assert sum(refused.values()) == 1  # the altered byte
    said = _kept(server)
    assert [why for _, _, why in IMPOSSIBLE if why not in said] == []
    for expected in ({"accepted": 1}, {"refused": {"used invitation": 1}}):
        (inbox / "true.json").write_bytes(true)
        assert expected.items() <= take(server).items()


def test_whoever_asks_without_noise_or_for_too_much_gets_nothing(
    home: Hospital, server: Server
) -> None:
    """Words for no noise, and a release that no envelope holds."""
    for change, words in (
        ({"servers": {"cleveland": ["public", None]}}, "nothing is hidden"),
        (
            {"release": "cells", "params": {"cells": 10**12, "grids": 10**9}},
            "an envelope holds",
        ),
        ({"servers": {"cleveland": [2.0, 0.9]}}, "delta is 0.9: refused"),
    ):
        task = home.asked(server, **change)
        assert words in home.refusal(task=task, table=home.root / "nowhere.csv")
