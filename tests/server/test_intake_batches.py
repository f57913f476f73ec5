"""Envelopes taken in together: each has the outcome that it would have alone."""

import random
from pathlib import Path
from typing import get_args

import pytest

from curvote.base.errors import UserError
from curvote.flows.intake.service import REASON_STATUS
from curvote.intake.admission import Reason, RefusedEnvelope
from curvote.intake.box import Intake
from curvote.messages.message import message_of, parse_message, parse_messages
from curvote.wire.envelope import Invitation, issue_invitations, seal_message
from tests.rounds import REPORTS, VOTES, edited, payload

N = 12


def rounds(path: Path) -> dict[str, list[Invitation]]:
    """Open a round of reports and one of votes."""
    invited = {task.asks: issue_invitations(task, N) for task in (REPORTS, VOTES)}
    reopen(path, invited)
    return invited


def reopen(path: Path, invited: dict[str, list[Invitation]]) -> None:
    """Open the same rounds in an intake."""
    with Intake(path) as intake:
        for task in (REPORTS, VOTES):
            given = {"pipeline": "p", "needed": 1, "task": task}
            intake.open_round(task.asks, invitations=invited[task.asks], **given)


def mixed(invited: dict[str, list[Invitation]]) -> list[bytes]:
    """Return good envelopes, repeated ones, and bad ones of many kinds, at random."""
    report, vote = invited["report"], invited["vote"]
    good = [seal_message(i, payload(REPORTS, i, k)) for k, i in enumerate(report)]
    good += [seal_message(i, payload(VOTES, i, k)) for k, i in enumerate(vote)]
    (stranger,) = issue_invitations(REPORTS, 1)
    one = payload(REPORTS, report[0])
    bad = [
        b"nothing",
        seal_message(stranger, one),
        seal_message(report[0], one | {"z": [0.3, *one["z"][1:]]}),
        seal_message(report[1], one | {"z": one["z"][1:]}),
        seal_message(report[2], one | {"label": 0}),
        seal_message(vote[0], {"learner": (vote[0].about + 1) % 3, "positive": True}),
        seal_message(vote[1], {"learner": vote[1].about, "positive": 1}),
        edited(good[3], lambda e: e["header"].update(kid=vote[2].id)),
        edited(good[4], lambda e: e.update(task="0" * 64)),
        edited(good[5], lambda e: e["message"]["z"].__setitem__(0, 0.0)),
    ]
    sent = [*good, *bad, *good[::3]]
    random.Random(5).shuffle(sent)
    return sent


def test_a_batch_tells_what_each_alone_is_told(tmp_path: Path) -> None:
    """Same outcomes, same words, same set: however the envelopes are cut up."""
    invited = rounds(tmp_path / "alone")
    sent = mixed(invited)
    with Intake(tmp_path / "alone") as intake:
        alone = [told(intake, data) for data in sent]
        names = [intake.close("report"), intake.close("vote")]
    assert {reason for reason, _ in alone} > {"accepted", "used invitation"}
    for size in (1, 7, len(sent)):
        path = tmp_path / str(size)
        reopen(path, invited)
        with Intake(path) as intake:
            parts = [sent[k : k + size] for k in range(0, len(sent), size)]
            every = [
                r for part in parts for r in intake.take_batch(part, parse_messages)
            ]
            assert [words(each) for each in every] == alone
            assert [intake.close("report"), intake.close("vote")] == names


def words(refused: RefusedEnvelope | None) -> tuple[str, str]:
    """Return an outcome as its reason and its words."""
    return (refused.reason, str(refused)) if refused else ("accepted", "")


def told(intake: Intake, data: bytes) -> tuple[str, str]:
    """Return the outcome of an envelope that comes alone."""
    try:
        intake.take(data, parse_message)
    except RefusedEnvelope as refused:
        return words(refused)
    return words(None)


def test_values_are_checked_in_one_call_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a thousand messages: the check is one of arrays, not a thousand."""
    calls = []
    kind = type(message_of(REPORTS))
    possible = kind.possible_mask

    def counted(self: object, task: object, messages: object) -> object:
        calls.append(len(messages["label"]))
        return possible(self, task, messages)

    monkeypatch.setattr(kind, "possible_mask", counted)
    invited = issue_invitations(REPORTS, 40)
    sent = [(None, payload(REPORTS, i, k)) for k, i in enumerate(invited)]
    assert parse_messages(REPORTS, sent) == [
        parse_message(REPORTS, *each) for each in sent
    ]
    assert calls[0] == len(sent)


def test_one_that_cannot_stand_in_an_array_spoils_no_other() -> None:
    """A check that refuses a whole array is asked again, message by message."""
    (invitation,) = issue_invitations(REPORTS, 1)
    good = payload(REPORTS, invitation)
    huge = good | {"z": [1e308, *good["z"][1:]]}
    first, second, third = parse_messages(
        REPORTS, [(None, good), (None, huge), (None, good | {"z": []})]
    )
    assert first == good
    assert isinstance(second, UserError)
    assert isinstance(third, UserError)


def test_whether_an_invitation_was_used_is_told_to_its_owner_only(
    tmp_path: Path,
) -> None:
    """Another message of the owner counts as accepted before; a forged one does not.

    And nothing of a forged one may be kept: it may be a copy of an accepted one.
    """
    invited = rounds(tmp_path / "i")
    one, other = invited["report"][:2]
    mine = seal_message(one, payload(REPORTS, one, 1))
    again = seal_message(one, payload(REPORTS, one, 2))
    nonsense = seal_message(one, {"z": [], "label": 7})
    forged = edited(mine, lambda e: e["message"].update(label=-1))
    with Intake(tmp_path / "i") as intake:
        sent = [mine, mine, again, nonsense, forged]
        found = intake.take_batch(sent, parse_messages)
        fresh = seal_message(other, payload(REPORTS, other))
        bent = edited(fresh, lambda e: e["message"].update(z=[1.0] * 4))
        (unused,) = intake.take_batch([bent], parse_messages)
    used = "used invitation"
    assert [each and each.reason for each in found[:4]] == [None, used, used, used]
    assert (found[4].reason, found[4].storable) == ("wrong seal", False)
    assert (unused.reason, unused.storable) == ("wrong seal", True)
    with Intake(tmp_path / "i") as intake:
        (late,) = intake.take_batch([forged], parse_messages)
    assert (late.reason, late.storable) == ("wrong seal", False)


def test_every_reason_has_an_answer() -> None:
    """Each with a problem type of its own; a used invitation is no problem."""
    assert {*REASON_STATUS} | {"used invitation"} == {*get_args(Reason)}
