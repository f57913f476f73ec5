"""Invitations of format 4: each is about one public record."""

from __future__ import annotations

from typing import Any

import pytest

from curvote.envelope import Invitation, genuine, issue_each, read, seal
from curvote.errors import UserError
from tests.rounds import REPORTS

SIGNER = "ab" * 32
NAMES = ["a", "b 7", "Zoë", "7.0"]


def test_each_record_has_an_invitation_of_its_own() -> None:
    """In their order, with ids and keys of their own; what is written reads back."""
    made = issue_each(REPORTS, NAMES, SIGNER)
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
    (invited,) = issue_each(REPORTS, ["a"], SIGNER)
    found = read(seal(invited, {"record": "a", "code": [0, 255]}))
    assert genuine(found, invited.key)
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
    (invited,) = issue_each(REPORTS, ["a"], SIGNER)
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
        issue_each(REPORTS, records, SIGNER)
