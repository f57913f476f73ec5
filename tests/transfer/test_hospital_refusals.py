"""What a hospital refuses, and what a steward does; nothing is lost by either."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.wire.envelope import Invitation, read_envelope, seal_message
from tests.exchange import NAME, Server
from tests.hospitals import Hospital, N, steward, table, take
from tests.rounds import quiet


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
