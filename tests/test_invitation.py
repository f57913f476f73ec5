"""Invitations of every format; one of format 4 is about one public record."""

import json
from collections import Counter
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.wire.envelope import (
    Invitation,
    is_genuine,
    issue_invitations,
    issue_record_invitations,
    read_envelope,
    seal_message,
)
from tests.rounds import REPORTS, VOTES
from tests.test_envelope import INVITATION, OLD, SEALED_1

SIGNER = "ab" * 32
NAMES = ["a", "b 7", "Zoë", "7.0"]


def test_invitations_are_random_and_survive_their_file() -> None:
    """No id and no key stands twice; JSON and back gives an equal invitation."""
    many = issue_invitations(VOTES, 500)
    assert len({i.id for i in many} | {i.key for i in many}) == 1000
    for one in many[:20]:
        assert Invitation.from_json(json.loads(json.dumps(one.to_json()))) == one
        assert one.key not in repr(one)


def test_candidates_are_spread_evenly_in_random_order() -> None:
    """Each candidate has equally many judges, or one more than others."""
    assert {i.about for i in issue_invitations(REPORTS, 5)} == {None}
    for count in (1, 2, 3, 100):
        shares = Counter(i.about for i in issue_invitations(VOTES, count))
        assert sum(shares.values()) == count
        assert max(shares.values()) - (count // 3) <= 1
        assert min([*shares.values(), 10**9]) >= max(count // 3, 1)
    orders = {tuple(i.about for i in issue_invitations(VOTES, 12)) for _ in range(20)}
    assert len(orders) > 15
    assert len({issue_invitations(VOTES, 1)[0].about for _ in range(200)}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"id": "00"},
        {"key": "G" * 64},
        {"key": "0" * 32},
        {"about": -1},
        {"about": "1"},
        {"about": 10**400},
        {"format": 5},
        {"format": True},
        {"task": None},
        {"server": "me"},
        {"client": "me"},
        {"asks": "report" * 99},
        {"asks": "\ud800"},
        {"asks": "report\n"},
        {"asks": ""},
    ],
)
def test_what_is_no_invitation_is_refused(change: dict[str, object]) -> None:
    """Every field has one form, and there are no others; the key is never quoted."""
    with pytest.raises(
        UserError, match=f"invitation: {next(iter(change))}: "
    ) as caught:
        Invitation.from_json(INVITATION.to_json() | change)
    assert INVITATION.key not in str(caught.value)


@pytest.mark.parametrize("other", [None, [], "text", 1, {"\ud800\n": 1}])
def test_no_object_is_no_invitation(other: object) -> None:
    """A JSON value of another kind is a UserError, too, that can be printed."""
    with pytest.raises(UserError, match="not an invitation") as caught:
        Invitation.from_json(other)
    assert str(caught.value).isprintable()


def test_a_sender_with_a_name_is_invited_in_format_3() -> None:
    """``server`` is its name then, and ``signer`` the key that signs the task."""
    (plain,) = issue_invitations(REPORTS, 1, "ab" * 32)
    assert plain.to_json()["server"] == plain.signer
    (named,) = issue_invitations(REPORTS, 1, "ab" * 32, server="long beach")
    told = named.to_json()
    assert (told["format"], told["server"]) == (3, "long beach")
    assert (told["signer"], told["about"]) == ("ab" * 32, None)
    assert Invitation.from_json(told) == named
    assert read_envelope(seal_message(named, {"n": 1})).format == 2
    wrong: dict[str, object]
    for wrong in ({"server": None}, {"server": ""}, {"signer": None}, {"about": 1}):
        with pytest.raises(UserError, match=f"invitation: {next(iter(wrong))}: "):
            Invitation.from_json(told | wrong)


def test_old_invitations_stay_valid() -> None:
    """One of format 1 is read as it was written, and answered in format 1."""
    assert OLD.to_json() == {
        "format": 1,
        "id": OLD.id,
        "key": OLD.key,
        "task": OLD.task,
        "asks": "report",
        "about": None,
    }
    assert Invitation.from_json(OLD.to_json()) == OLD
    assert json.loads(SEALED_1)["format"] == read_envelope(SEALED_1).format == 1
    assert is_genuine(read_envelope(SEALED_1), OLD.key)


@pytest.mark.parametrize("change", [{"format": True}, {"format": 1.0}, {"server": "0"}])
def test_what_is_no_old_invitation_is_refused(change: dict[str, object]) -> None:
    """True and 1.0 are not 1, whatever Python says."""
    with pytest.raises(UserError, match="not an invitation"):
        Invitation.from_json(OLD.to_json() | change)


def test_each_record_has_an_invitation_of_its_own() -> None:
    """In their order, with ids and keys of their own; what is written reads back."""
    made = issue_record_invitations(REPORTS, NAMES, SIGNER)
    assert [each.record for each in made] == NAMES
    assert [each.subject for each in made] == NAMES
    assert len({each.id for each in made} | {each.key for each in made}) == 8
    told = made[0].to_json()
    assert sorted(told) == sorted(
        ["format", "id", "key", "task", "asks", "record", "signer", "seal_to"]
    )
    assert told["format"] == 4
    assert [Invitation.from_json(each.to_json()) for each in made] == made
    assert repr(made[0]).count(made[0].key) == 0


def test_its_envelope_is_that_of_format_2() -> None:
    """The record stands in the message, under the seal."""
    (invited,) = issue_record_invitations(REPORTS, ["a"], SIGNER)
    found = read_envelope(seal_message(invited, {"record": "a", "code": [0, 255]}))
    assert is_genuine(found, invited.key)
    assert (found.format, found.invitation) == (2, invited.id)
    assert found.payload == {"record": "a", "code": [0, 255]}


@pytest.mark.parametrize(
    "change",
    [
        {"record": None},
        {"record": ""},
        {"record": " a"},
        {"record": "a\n"},
        {"record": 7},
        {"record": "a" * 61},
        {"signer": None},
        {"signer": "me"},
        {"seal_to": ""},
        {"about": None},
        {"server": SIGNER},
        {"key": "0" * 32},
        {"format": 2},
        {"format": 3},
        {"format": 4.0},
    ],
)
def test_what_is_no_such_invitation_is_refused(change: dict[str, Any]) -> None:
    """Neither a candidate nor a sender goes with a record; the key is not quoted."""
    (invited,) = issue_record_invitations(REPORTS, ["a"], SIGNER)
    with pytest.raises(UserError, match="not an invitation: ") as caught:
        Invitation.from_json(invited.to_json() | change)
    assert invited.key not in str(caught.value)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "records is 0"),
        (["a", "b", "a"], "'a' stands twice"),
        (["a", ""], "1 to 60 characters"),
        (["a", "b\t"], "plain text"),
    ],
)
def test_names_are_plain_and_each_once(records: list[str], words: str) -> None:
    """Whoever reads an invitation can compare its record with their own."""
    with pytest.raises(UserError, match=words):
        issue_record_invitations(REPORTS, records, SIGNER)
