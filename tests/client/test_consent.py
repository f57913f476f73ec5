"""What a client agrees to: its own caps, one server, and a line that it has read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.client.consent import consent_line, refuse_excess_budget
from curvote.ledger import account, places, session
from curvote.ledger.account import POPULATION, Account
from curvote.ledger.amounts import Amount
from curvote.ledger.book import Ledger
from curvote.ledger.register import open_books
from curvote.messages.answer import describe_answer
from curvote.wire.signing import ServerKey, open_signed
from curvote.wire.strict_json import canonical_json
from curvote.wire.task import Task
from tests.invited import Home, envelopes, printed, run
from tests.processes import run_command
from tests.rounds import REPORTS, VOTES

GAUSSIAN = replace(REPORTS, mechanism="gaussian", params={"delta": 0.5})


def delta_of(delta: float, epsilon: float = 1.0) -> Task:
    """Return a task whose mechanism fails with probability ``delta``."""
    return replace(GAUSSIAN, epsilon=epsilon, params={"delta": delta})


@pytest.mark.parametrize(
    "task", [replace(REPORTS, epsilon=50.0), delta_of(0.5, 50.0), delta_of(0.5)]
)
def test_a_fresh_user_is_not_asked_for_more_than_the_house_allows(home, drawn, task):
    """Exit 2; no word of entropy, no entry, no file: whatever the task calls a cap."""
    home.invite(task)
    said = home.refusal("report")
    assert ("room" if task.mechanism == "laplace" else "delta is 0.5") in said
    assert drawn == []
    done = run_command("client", *home.words("report"))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert (home.entries(), envelopes()) == ([], set())


def test_a_fresh_user_reads_one_line_of_consent_and_sends_one_envelope(home):
    """Who, what, to whom, for how much, and what is left; the default cap aloud."""
    done = home.client("report")
    assert done.exit_code == 0
    (consent,) = [x for x in done.stderr.splitlines() if "sends one noised" in x]
    server = home.server.fingerprint
    assert consent == (
        "me sends one noised report (4 numbers, a class of no/yes) to server"
        f" {server[:12]}.. (new): epsilon 1 (whoever reads it may change any odds about"
        " you by a factor of at most 2.72), delta 0; 1 of your cap of 2 is left after"
        " it"
    )
    assert "the default holds from now on: epsilon 2, delta 0" in done.stderr
    assert f"server {server} is new" in done.stderr
    assert [entry.state for entry in home.entries()] == ["confirmed"]
    assert len(envelopes()) == 1
    home.invite(VOTES)
    again = home.client("vote", "--json")
    assert printed(again)["left"] == 0
    assert len(again.stderr.splitlines()) == 1
    assert "one bit about candidate" in again.stderr
    assert f"{server[:12]}.. (pinned)" in again.stderr


@pytest.mark.parametrize("epsilon", [1e9, 1e13, 1.0000001, 1e308])
def test_after_an_honest_release_a_huge_task_is_refused(home, drawn, epsilon):
    """A cap of the task's own, or an allowance that grows with it, let it pass.

    The cap alone would refuse it, however a task is judged.
    """
    home.client("report")
    drawn.clear()
    home.invite(replace(REPORTS, epsilon=epsilon, number=2))
    home.refusal("report")
    assert drawn == []
    with Ledger(places.ledger_path()) as ledger:
        spent = Account.from_ledger(ledger)
    assert spent.remaining() == (1.0, 0.0)
    with pytest.raises(UserError, match="no room"):
        refuse_excess_budget(spent, Budget(epsilon))


@pytest.mark.parametrize("cap_delta", ["0", "1e-5", "0.9999999"])
@pytest.mark.parametrize("delta", [0.999999, 0.5, 1.01e-4])
def test_hardly_any_noise_is_not_called_epsilon_one(home, drawn, cap_delta, delta):
    """Delta above 1e-4 is refused even where the cap on delta is larger."""
    run("init", "--cap", "1", "--cap-delta", cap_delta)
    home.invite(delta_of(delta))
    assert f"delta is {delta:g}: refused, whatever the cap" in home.refusal("report")
    assert drawn == []


def test_delta_is_held_to_the_clients_cap_and_always_said(home: Home) -> None:
    """A cap without delta has no room for any."""
    home.invite(delta_of(1e-5))
    assert "epsilon 1, delta 1e-05: the default cap (" in home.refusal("report")
    run("init", "--cap-delta", "1e-5")
    done = home.client("report")
    assert "), delta 1e-05 (" in done.stderr
    assert "released one report, epsilon 1, delta 1e-05" in done.stdout
    assert "left      epsilon 1, delta 0 of your cap of epsilon 2, delta 1e-05" in (
        done.stdout
    )
    home.invite(replace(delta_of(1e-5), number=2))
    assert "room" in home.refusal("report")


def test_the_house_default_never_changes_by_itself(home, monkeypatch):
    """It stands in the ledger from the first release on, not from a refused one."""
    home.invite(replace(REPORTS, epsilon=50.0))
    home.refusal("report")
    with Ledger(places.ledger_path()) as ledger:
        assert ledger.cap(POPULATION) is None
        assert ledger.setting("server") is None
    home.invite(REPORTS)
    home.client("report")
    monkeypatch.setattr(account, "DEFAULT_CAP", Budget(100.0))
    home.invite(replace(REPORTS, epsilon=50.0))
    assert "your cap is epsilon 2" in home.refusal("report")


def test_the_first_server_is_pinned_and_another_refused(home, other, drawn):
    """Whoever replaces task and invitation on the way is not the server."""
    home.client("report")
    drawn.clear()
    home.invite(VOTES, other)
    said = home.refusal("vote")
    assert other.fingerprint in said
    assert home.server.fingerprint in said
    home.invite(REPORTS, other)
    assert other.fingerprint in home.refusal("report")  # not even what was released
    assert drawn == []
    home.invite(VOTES)
    assert home.client("vote").exit_code == 0


def test_a_server_is_pinned_before_the_first_task(home, other, drawn):
    """With its fingerprint from elsewhere, not even the first task can be another's."""
    run("init", "--server", home.server.fingerprint)
    home.invite(REPORTS, other)
    assert "once and for all" in home.refusal("report")
    assert drawn == []
    home.invite(REPORTS)
    done = home.client("report")
    assert done.exit_code == 0
    assert "is new" not in done.stderr


def test_task_and_invitation_are_of_one_server(home: Home, other: ServerKey) -> None:
    """One of the two was replaced on its way."""
    home.publish(REPORTS.to_json(), other)
    assert "one of them was replaced" in home.refusal("report")


def test_an_altered_or_unsigned_task_is_refused(home: Home) -> None:
    """Its epsilon is what the server signed, to the last bit; each tenth by command."""
    good = Path("task.json").read_bytes()
    places_ = np.random.default_rng(1).integers(0, len(good), 100)
    for number, place in enumerate(places_):
        bad = bytearray(good)
        bad[place] ^= 1
        with pytest.raises(UserError):
            open_signed(bytes(bad))
        if number % 10 == 0:
            Path("task.json").write_bytes(bytes(bad))
            home.refusal("report")
    Path("task.json").write_bytes(canonical_json(REPORTS.to_json()))
    assert "not a signed task" in home.refusal("report")


def test_the_task_is_judged_before_the_record_is_read(home: Home) -> None:
    """What is refused is refused alike, whatever curve and label are, or are not."""
    tasks = (replace(REPORTS, epsilon=50.0), delta_of(0.5))
    for task in tasks:
        home.invite(task)
        said = {
            home.refusal("report", curve=curve, label=label)
            for curve in ("curve.csv", "missing.csv")
            for label in ("yes", "no", "perhaps")
        }
        assert len(said) == 1


@pytest.mark.parametrize("agreed", [("yes", "no"), ("yes,no",)])
def test_classes_that_were_agreed_to_hide_the_label(home, drawn, agreed):
    """A list with other words is refused by everybody, not by one class alone."""
    agreed = ("--classes", *agreed)
    home.invite(replace(REPORTS, classes=("certainly", "no")))
    said = {
        home.refusal("report", *agreed, label=label, curve=curve)
        for label in ("yes", "no")
        for curve in ("curve.csv", "missing.csv")
    }
    assert len(said) == 1
    assert "certainly/no" in said.pop()
    assert drawn == []
    home.invite(REPORTS)
    assert home.client("report", *agreed).exit_code == 0


@pytest.mark.parametrize("agreed", [("-1", "0", "1"), ("1,-1,0",), ("0,1", "-1")])
def test_several_classes_are_agreed_to_as_two_are(home, agreed):
    """Whatever their order, and also where one of them begins like an option."""
    asked = replace(REPORTS, protocol="majority", classes=("-1", "0", "1"))
    home.invite(replace(asked, mechanism="k_rr"))
    assert "-1/0/1" in home.refusal("report", "--classes", "0,1", label="0")
    assert home.client("report", "--classes", *agreed, label="0").exit_code == 0


def test_a_server_writes_no_line_of_consent(home: Home) -> None:
    """Line breaks, control sequences and marks of direction become question marks."""
    evil = "yes\nme sends nothing\x1b[2K\r\u202e" + "x" * 1000
    task = replace(REPORTS, classes=("no", evil))
    where = Account("me", Budget(2.0), chosen=True, server=None, spent=Amount())
    shown = consent_line(where, task.budget, "ab" * 32, describe_answer(task, None))
    assert shown.isprintable()
    assert len(shown) < 400


def test_the_library_refuses_delta_as_the_command_does(home, tmp_path):
    """Whoever calls the outbox without a command line gets the same rule."""
    with (
        open_books(tmp_path / "ledger", tmp_path / "register") as opened,
        pytest.raises(UserError, match=r"at most 0\.0001"),
    ):
        session.release_message(
            dict,
            task=GAUSSIAN,
            invitation=home.invite(GAUSSIAN),
            sender="me",
            number=1,
            books=opened,
            outbox=tmp_path / "outbox",
        )
