"""Envelopes: written in one way, read strictly, sealed."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.messages.message import parse_message
from curvote.wire import envelope, signing
from curvote.wire.envelope import (
    is_genuine,
    issue_invitations,
    read_envelope,
    seal_message,
)
from curvote.wire.task import Task
from tests.rounds import PARTS, REPORTS, VOTES, edited, old, payload

(INVITATION,) = issue_invitations(REPORTS, 1)
OLD = old(INVITATION)
CONTENT = {"label": 1, "z": [0.5, -0.25, 0.0, 2.0]}
SEALED, SEALED_1 = seal_message(INVITATION, CONTENT), seal_message(OLD, CONTENT)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(), st.text()
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=5), max_leaves=9)


def refusal(data: bytes) -> str:
    """Return why an envelope is not even read."""
    with pytest.raises(UserError) as caught:
        read_envelope(data)
    return str(caught.value)


def test_a_task_has_the_same_digest_on_both_sides() -> None:
    """The client computes it from the published JSON, the server from its own task."""
    for task in (REPORTS, VOTES):
        published = json.loads(json.dumps(task.to_json(), indent=1))
        assert Task.from_json(published).digest() == task.digest()


def test_an_envelope_holds_a_release_of_8192_numbers() -> None:
    """Sealed as well, and longer numbers make no longer envelope."""
    (named,) = issue_invitations(REPORTS, 1, "ab" * 32, server="va")
    lengths = set()
    for each in (0, -(2**53)):
        message = {"server": "va", "n": 2**40, "values": [each] * 10_000}
        for to in (None, envelope.public_key(envelope.new_private_key())):
            data = seal_message(named, message, to)
            assert len(data) <= envelope.LARGEST_ENVELOPE
            lengths.add((to is None, len(data)))
        assert read_envelope(seal_message(named, message)).payload == message
    assert len(lengths) == 2


def test_an_envelope_says_nothing_but_task_invitation_and_message() -> None:
    """One line of sorted ASCII; the key is not in it."""
    for data, invitation in ((SEALED, INVITATION), (SEALED_1, OLD)):
        assert data.count(b"\n") == 1
        assert data.isascii()
        assert invitation.key.encode() not in data
    found = json.loads(SEALED)
    assert [*found] == ["payload", "protected", "signature"]
    header, content = (json.loads(signing.from_base64url(found[n])) for n in PARTS[:2])
    told = {"alg": "HS256", "kid": INVITATION.id, "typ": "curvote-envelope"}
    assert (header, {*content}) == (told, {"message", "task"})


@given(content=st.dictionaries(st.text(), values, max_size=4))
def test_what_is_sealed_is_read_back_and_genuine(content: dict[str, object]) -> None:
    """For every payload of finite JSON values; others are not read."""
    try:
        found = read_envelope(seal_message(INVITATION, content))
    except ValueError:
        odd = ("nan", "inf", "\\ud", "\\udb", *map(str, range(10)))
        assert any(each in repr(content) for each in odd)
        return
    assert found.payload == content
    assert is_genuine(found, INVITATION.key)
    assert not is_genuine(found, issue_invitations(REPORTS, 1)[0].key)
    assert not is_genuine(found, INVITATION.key[:32])


def test_whatever_is_altered_breaks_the_seal() -> None:
    """Task, invitation, every number and every key of the payload are under it."""
    other = issue_invitations(VOTES, 1)[0]
    for data, key, invitation, message in (
        (SEALED, INVITATION.key, ("header", "kid"), "message"),
        (SEALED_1, OLD.key, ("invitation",), "payload"),
    ):
        changes = [
            lambda e: e.update(task=other.task),
            lambda e, at=invitation: _set(e, at, other.id),
            lambda e, m=message: e[m].update(label=-1),
            lambda e, m=message: e[m].update(extra=0),
            lambda e, m=message: e[m]["z"].reverse(),
            lambda e, m=message: e[m]["z"].__setitem__(0, 0.5000000000000001),
        ]
        assert is_genuine(read_envelope(data), key)
        for change in changes:
            assert not is_genuine(read_envelope(edited(data, change)), key)
    assert not is_genuine(
        read_envelope(edited(SEALED_1, lambda e: e.update(seal="0" * 64))), key
    )


def _set(values: dict[str, Any], at: tuple[str, ...], value: object) -> None:
    for name in at[:-1]:
        values = values[name]
    values[at[-1]] = value


def test_the_size_tells_nothing_about_the_message() -> None:
    """As long as the longest: a bit, a label or a number's digits do not show."""
    sizes = {
        len(
            seal_message(
                INVITATION, {"label": label, "z": [first, 0.1, -7.25e-300, 3.0]}
            )
        )
        for label in (1, -1)
        for first in (0.0, -1.7976931348623157e308, -2.2250738585072014e-308, 1)
    }
    votes = {
        len(seal_message(INVITATION, {"learner": learner, "positive": bit}))
        for learner in (0, 2**53)
        for bit in (True, False)
    }
    assert len(sizes) == len(votes) == 1


def test_each_way_of_being_unreadable_has_its_own_reason() -> None:
    """A steward can tell a torn upload from a foreign file."""
    body = SEALED_1.decode().strip()
    deep = "[" * 100_000
    reasons = [
        refusal(data)
        for data in (
            SEALED_1[:-40],
            b"hello",
            b"[1, 2]",
            body.encode("utf-16"),
            (body + body).encode(),
            body.replace('"label":1', '"label":1,"label":1').encode(),
            body.replace("0.5", "NaN").encode(),
            body.replace("0.5", "1e999").encode(),
            body.replace("0.5", "9" * 5000).encode(),
            body.replace("0.5", deep).encode(),
            body.replace("0.5", "[[[[[[[[[1]]]]]]]]]").encode(),
            SEALED_1 + b" " * envelope.LARGEST_ENVELOPE,
            edited(SEALED_1, lambda e: e.update(format=3)),
            edited(SEALED_1, lambda e: e.update(client="me")),
            edited(SEALED_1, lambda e: e.pop("seal")),
            edited(SEALED_1, lambda e: e.update(payload=[])),
            edited(SEALED_1, lambda e: e.update(seal="ABC")),
            body.replace('"label"', '"\\ud800"').encode(),
            SEALED_1.replace(b",", b", "),
            SEALED[:-40],
        )
    ]
    assert "cut off" in reasons[0] == reasons[-1]
    assert "NaN" in reasons[6]
    assert len(set(reasons)) == len(reasons) - 2  # the two too deep, the two cut off
    assert all(len(reason) < 200 and reason.isprintable() for reason in reasons)


def test_what_an_honest_client_sends_passes_the_check() -> None:
    """Reports and votes about each candidate, for several draws."""
    for task in (REPORTS, VOTES, replace(REPORTS, epsilon=0.1)):
        for seed, invitation in enumerate(issue_invitations(task, 12)):
            parse_message(task, invitation.about, payload(task, invitation, seed))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"z": [0.5, 0.5, 0.5]}, "never gives 3 such numbers in z"),
        ({"z": [0.3, 0.5, 0.5, 0.5]}, "never gives 4 such numbers in z"),
        ({"z": [True, 0.5, 0.5, 0.5]}, "z.0: |of another kind"),
        ({"z": [10**400, 0.5, 0.5, 0.5]}, "z.0: "),
        ({"z": [2**53 + 1, 0.5, 0.5, 0.5]}, "of another kind"),
        ({"label": 1.0}, "label|kind"),
        ({"z": "0000"}, "z: Input should be a valid list"),
        ({"label": 0}, "label: Input should be -1 or 1"),
        ({"label": True}, "label|kind"),
        ({"age": 41}, "age: Extra inputs"),
    ],
)
def test_what_no_client_can_have_sent_is_refused(
    change: dict[str, object], reason: str
) -> None:
    """Off the mechanism's grid, of another length or kind, no label, or too much."""
    honest = {"z": [0.5, 0.5, 0.5, 0.5], "label": 1}
    parse_message(REPORTS, None, honest)
    with pytest.raises(UserError, match=reason):
        parse_message(REPORTS, None, honest | change)


def test_a_vote_is_about_the_candidate_of_its_invitation() -> None:
    """Else one client could pick whom it judges."""
    parse_message(VOTES, 1, {"learner": 1, "positive": False})
    with pytest.raises(UserError, match="candidate 2; the invitation asks about"):
        parse_message(VOTES, 1, {"learner": 2, "positive": False})
    with pytest.raises(UserError, match="no client can have sent this vote"):
        parse_message(VOTES, 3, {"learner": 3, "positive": False})


@given(
    content=st.fixed_dictionaries({"z": values, "label": values})
    | st.fixed_dictionaries({"learner": values, "positive": values}),
    task=st.sampled_from([REPORTS, VOTES]),
)
def test_no_payload_can_do_more_than_be_refused(
    content: dict[str, object], task: Task
) -> None:
    """Whatever parses as JSON is accepted or a UserError."""
    try:
        parse_message(
            task, None, read_envelope(seal_message(INVITATION, content)).payload
        )
    except ValueError:  # a UserError; NaN, infinity: not JSON
        return
    assert set(content) == set(payload(task, issue_invitations(task, 1)[0]))
