"""A client's release: drawn once, published once, counted whatever happens."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.ledger.book import Ledger
from curvote.ledger.register import open_books
from curvote.ledger.session import latest_number, release_message
from curvote.wire.envelope import issue_invitations, read_envelope
from tests.releasing import ONE, Client, refuse
from tests.rounds import REPORTS, VOTES


def test_a_release_is_published_and_confirmed(client: Client) -> None:
    """One envelope named by its invitation; the ledger knows place and bytes."""
    (invitation,) = issue_invitations(REPORTS, 1)
    path, data = client.release(invitation)
    assert path.name == invitation.file_name
    assert read_envelope(data).invitation == invitation.id
    entry = client.entry()
    assert entry is not None
    assert (entry.state, entry.budget, entry.place) == ("confirmed", ONE, str(path))
    assert entry.digest == hashlib.sha256(data).hexdigest()
    assert client.files() == {"envelope"}


def test_a_thousand_reruns_release_one_and_the_same(client: Client) -> None:
    """Whatever invitation they bring: averaging reruns teaches nobody anything."""
    first = client.release()
    with open_books(client.path, client.register) as opened:
        for invitation in issue_invitations(REPORTS, 1000):
            again = release_message(
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
        assert latest_number(ledger, REPORTS, "me") == 2
        assert (
            latest_number(ledger, REPORTS, "you")
            == latest_number(ledger, VOTES, "me")
            == 0
        )


def test_an_invitation_is_for_one_task_and_one_release(client: Client) -> None:
    """Another task: refused before anything. Used: the budget would be wasted."""
    (invitation,) = issue_invitations(VOTES, 1)
    with pytest.raises(UserError, match="different rounds"):
        client.release(invitation)
    assert not client.outbox.exists()
    (invitation,) = issue_invitations(REPORTS, 1)
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
