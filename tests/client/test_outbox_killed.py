"""A release that is killed at any step: settled by the next call, charged once."""

import os
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.ledger import session
from curvote.ledger.account import POPULATION
from curvote.ledger.book import Ledger
from curvote.ledger.register import Register
from curvote.wire.envelope import issue_invitations
from tests.releasing import Client, Killed, kill_round, killing, refuse, undisturbed
from tests.rounds import VOTES

STEPS: list[tuple[Any, str, bool, str | None, set[str], str | None]] = [
    # kill at, before or after; then state and files; then the state when settled
    (os, "fsync", False, None, {".tmp"}, None),
    (Ledger, "reserve", False, None, {".tmp"}, None),
    (Ledger, "reserve", True, "reserved", {".tmp"}, "cancelled"),
    (Register, "claim", True, "reserved", {".tmp"}, "cancelled"),
    (session, "seal_message", True, "reserved", {".tmp"}, "cancelled"),
    (Path, "rename", False, "reserved", {".tmp"}, "cancelled"),
    (Path, "rename", True, "reserved", {"envelope"}, "confirmed"),
    (Ledger, "confirm", False, "reserved", {"envelope"}, "confirmed"),
    (Ledger, "confirm", True, "confirmed", {"envelope"}, "confirmed"),
]


@pytest.mark.parametrize(("where", "name", "after", "state", "files", "settled"), STEPS)
def test_a_kill_at_any_step_is_settled_by_the_next_call(
    client: Client,
    where: Any,
    name: str,
    after: bool,
    state: str | None,
    files: set[str],
    settled: str | None,
) -> None:
    """What may have left counts from then on; what was published is never redrawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, killing(getattr(where, name), after=after))
        with pytest.raises(Killed):
            client.release()
    assert (client.state(), client.files()) == (state, files)
    published = {p: p.read_bytes() for p in client.outbox.glob("*.json")}
    with pytest.raises(UserError, match="different rounds"):
        client.release(issue_invitations(VOTES, 1)[0])
    assert client.state() == state  # a refused call settles nothing
    if settled == "confirmed":
        with pytest.raises(UserError, match="room"):
            client.release(number=2)
    else:
        client.release(number=2)
    assert client.state() == settled
    if settled == "confirmed":
        path, data = client.release()
        assert published == {path: data}
    assert client.draws <= 2


@pytest.mark.parametrize(
    ("where", "name", "after", "settled"),
    [
        (Ledger, "reserve", True, "cancelled"),
        (Path, "rename", False, "cancelled"),
        (Path, "rename", True, "confirmed"),
    ],
)
def test_a_release_about_many_is_settled_for_all_of_them(
    client: Client, where: Any, name: str, after: bool, settled: str
) -> None:
    """Each record is charged once or not at all, whenever the process is killed."""
    many = [f"patient {i}" for i in range(20)]
    given: dict[str, Any] = {"sender": "a hospital", "clients": many}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, killing(getattr(where, name), after=after))
        with pytest.raises(Killed):
            client.release(**given)
    with Ledger(client.path) as ledger:
        assert ledger.spent(POPULATION).epsilon.tolist() == [1.0] * 20
    left = {path: path.read_bytes() for path in client.outbox.glob("*.json")}
    if settled == "cancelled":
        with pytest.raises(UserError, match="NaN"):
            client.release(draw=refuse, **given)
        with Ledger(client.path) as ledger:
            assert ledger.spent(POPULATION).epsilon.tolist() == []
    path, data = client.release(**given)
    assert left in ({}, {path: data})
    assert client.draws == (1 if left or name == "reserve" else 2)
    # Of other records by then: the release is the sender's, and it was made.
    assert client.release(**given | {"clients": many[:3]})[1] == data
    with Ledger(client.path) as ledger:
        (entry,) = (e for e in ledger.entries() if e.counts)
        assert ledger.members(entry.release).tolist() == sorted(many)
        assert ledger.problems() == []
    with pytest.raises(UserError, match="1 of 2 clients"):
        client.release(task=VOTES, sender="a hospital", clients=[*many[:1], "new"])


@pytest.mark.parametrize(
    ("first", "second", "settled"),
    [
        ((Path, "rename", False), (Register, "withdraw", False), "reserved"),
        ((Path, "rename", False), (Ledger, "cancel", False), "reserved"),
        ((Path, "rename", False), (Ledger, "cancel", True), "cancelled"),
        ((Ledger, "confirm", False), (Ledger, "confirm", False), "reserved"),
        ((Ledger, "confirm", False), (Ledger, "confirm", True), "confirmed"),
    ],
)
def test_a_recovery_may_be_killed_as_well(client, first, second, settled):
    """The third call finishes what the second could not."""
    for where, name, after in (first, second):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(where, name, killing(getattr(where, name), after=after))
            with pytest.raises(Killed):
                client.release()
    assert client.state() == settled
    before = [path.read_bytes() for path in client.outbox.glob("*.json")]
    _, data = client.release()
    assert before in ([], [data])
    assert (client.state(), client.files()) == ("confirmed", {"envelope"})
    assert client.draws == 2 - len(before)


def test_nobody_knows_whether_it_left(client: Client) -> None:
    """Reserved, and both files gone: it counts for ever, and is not drawn again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "confirm", killing(Ledger.confirm, after=False))
        with pytest.raises(Killed):
            client.release()
    for path in client.outbox.glob("*.json"):
        path.unlink()
    for _ in range(2):
        with pytest.raises(UserError, match="nobody knows"):
            client.release()
    assert client.state() == "spent"
    assert client.draws == 1


def test_an_unfinished_release_is_settled_in_the_outbox_it_began_in(client, tmp_path):
    """Another outbox finds it, confirms it there, and draws nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "confirm", killing(Ledger.confirm, after=False))
        with pytest.raises(Killed):
            client.release()
    path, _ = client.release(outbox=tmp_path / "other")
    assert path.parent == client.outbox
    assert (client.state(), client.draws) == ("confirmed", 1)


def test_kill_9_at_random_moments_loses_nothing(tmp_path: Path) -> None:
    """Twelve rounds of a real process that is killed and called again."""
    slowest = 2 * undisturbed(tmp_path / "whole")
    for seed in range(12):
        kill_round(tmp_path / f"{seed}", seed, slowest)
