"""A client's release: drawn once, published once, counted whatever happens."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curvote.client import outbox
from curvote.client.ledger import Ledger
from curvote.client.outbox import latest, release
from curvote.client.register import Register, books
from curvote.client.standing import POPULATION
from curvote.envelope import issue, read
from curvote.errors import UserError
from tests.releasing import ONE, Client, kill_round, undisturbed
from tests.rounds import REPORTS, VOTES


class Killed(Exception):  # noqa: N818 - what happens to the process
    """Stands for the end of the process: nobody tidies up."""


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """Return a client who has released nothing yet."""
    return Client(tmp_path)


def test_a_release_is_published_and_confirmed(client: Client) -> None:
    """One envelope named by its invitation; the ledger knows place and bytes."""
    (invitation,) = issue(REPORTS, 1)
    path, data = client.release(invitation)
    assert path.name == invitation.file_name
    assert read(data).invitation == invitation.id
    entry = client.entry()
    assert entry is not None
    assert (entry.state, entry.budget, entry.place) == ("confirmed", ONE, str(path))
    assert entry.digest == hashlib.sha256(data).hexdigest()
    assert client.files() == {"envelope"}


def test_a_thousand_reruns_release_one_and_the_same(client: Client) -> None:
    """Whatever invitation they bring: averaging reruns teaches nobody anything."""
    first = client.release()
    with books(client.path, client.register) as opened:
        for invitation in issue(REPORTS, 1000):
            again = release(
                client.draw,
                task=REPORTS,
                invitation=invitation,
                sender="me",
                number=1,
                books=opened,
                outbox=client.outbox,
            )
            assert again == first[0]
            assert again.read_bytes() == first[1]
        assert len(opened[0].entries()) == 1
    assert client.draws == 1
    assert client.files() == {"envelope"}


def test_a_second_release_needs_room_in_the_cap(client: Client) -> None:
    """Refused before a word is drawn; with room it is another envelope."""
    _, first = client.release()
    for changes in ({"number": 2}, {"task": VOTES}):
        with pytest.raises(UserError, match="room"):
            client.release(**changes)
    assert client.draws == 1
    assert client.files() == {"envelope"}
    client.raise_cap(2)
    _, second = client.release(number=2)
    assert second != first
    with Ledger(client.path) as ledger:
        assert latest(ledger, REPORTS, "me") == 2
        assert latest(ledger, REPORTS, "you") == latest(ledger, VOTES, "me") == 0


def test_an_invitation_is_for_one_task_and_one_release(client: Client) -> None:
    """Another task: refused before anything. Used: the budget would be wasted."""
    (invitation,) = issue(VOTES, 1)
    with pytest.raises(UserError, match="different rounds"):
        client.release(invitation)
    assert not client.outbox.exists()
    (invitation,) = issue(REPORTS, 1)
    path, data = client.release(invitation)
    client.raise_cap(2)
    for _ in range(2):
        with pytest.raises(UserError, match="used for another release"):
            client.release(invitation, number=2)
        path.rename(path.with_suffix(".sent")) if path.exists() else None
    assert client.state(2) is None
    assert path.with_suffix(".sent").read_bytes() == data


def test_an_envelope_that_was_sent_away_is_not_drawn_again(client: Client) -> None:
    """It says when it was released; an altered one is not passed on either."""
    path, data = client.release()
    path.write_bytes(data + b" ")
    with pytest.raises(UserError, match="not what was released"):
        client.release()
    path.unlink()
    entry = client.entry()
    assert entry is not None
    with pytest.raises(UserError, match="1 is spent") as caught:
        client.release()
    for words in (f"released on {entry.confirmed}", "--new-release draws anew"):
        assert words in str(caught.value)
    assert client.draws == 1


def test_a_moved_outbox_still_holds_the_release(client: Client, tmp_path: Path) -> None:
    """The folder may be renamed, and another outbox gets the old path."""
    path, data = client.release()
    assert client.release(outbox=tmp_path / "other")[0] == path
    client.outbox = client.outbox.rename(tmp_path / "moved")
    assert client.release(outbox=client.outbox) == (client.outbox / path.name, data)
    assert client.draws == 1


def refuse() -> dict[str, Any]:
    """Stand for a mechanism that refuses."""
    raise UserError("NaN")


def test_a_refused_record_costs_nothing(client: Client) -> None:
    """A mechanism that refuses gives the reservation back and leaves no file."""
    with pytest.raises(UserError, match="NaN"):
        client.release(draw=refuse)
    assert client.state() == "cancelled"
    assert client.files() == set()
    client.release()
    assert client.state() == "confirmed"


def test_ctrl_c_while_drawing_costs_nothing(client: Client) -> None:
    """The reservation is given back at once, and no file is left."""

    def interrupted() -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.release(draw=interrupted)
    assert (client.state(), client.files()) == ("cancelled", set())
    client.release()
    assert client.state() == "confirmed"


def killing(function: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    """Return a function that ends the process before, or after, it did its work."""

    def wrapped(*given: Any, **named: Any) -> Any:
        if after:
            function(*given, **named)
        raise Killed

    return wrapped


STEPS: list[tuple[Any, str, bool, str | None, set[str], str | None]] = [
    # kill at, before or after; then state and files; then the state when settled
    (os, "fsync", False, None, {".tmp"}, None),
    (Ledger, "reserve", False, None, {".tmp"}, None),
    (Ledger, "reserve", True, "reserved", {".tmp"}, "cancelled"),
    (Register, "enter", True, "reserved", {".tmp"}, "cancelled"),
    (outbox, "seal", True, "reserved", {".tmp"}, "cancelled"),
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
        client.release(issue(VOTES, 1)[0])
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
def test_a_recovery_may_be_killed_as_well(
    client: Client, first: Any, second: Any, settled: str
) -> None:
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


def test_an_unfinished_release_is_settled_in_the_outbox_it_began_in(
    client: Client, tmp_path: Path
) -> None:
    """Another outbox finds it, confirms it there, and draws nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "confirm", killing(Ledger.confirm, after=False))
        with pytest.raises(Killed):
            client.release()
    path, _ = client.release(outbox=tmp_path / "other")
    assert path.parent == client.outbox
    assert (client.state(), client.draws) == ("confirmed", 1)


def test_kill_9_at_random_moments_loses_nothing(tmp_path: Path) -> None:
    """Thirty rounds of a real process that is killed and called again."""
    slowest = 2 * undisturbed(tmp_path / "whole")
    for seed in range(30):
        kill_round(tmp_path / f"{seed}", seed, slowest)
