"""The intake: each invited client's message once, and no way back to who sent it."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import InternalError, UserError
from curvote.intake.admission import RefusedEnvelope
from curvote.intake.box import Intake
from curvote.messages.message import parse_message
from curvote.messages.stages import _message_table
from curvote.wire.envelope import Invitation, issue_invitations, seal_message
from curvote.wire.strict_json import canonical_json
from curvote.wire.task import Task
from tests import rounds
from tests.damages import DAMAGES, Damage, content, execute
from tests.rounds import REPORTS, VOTES, edited, payload

N = 6


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where an intake with a round of reports and one of votes stands."""
    return tmp_path / "state" / "intake.sqlite"


@pytest.fixture
def invited(path: Path) -> dict[str, list[Invitation]]:
    """Open both rounds and return their invitations."""
    issued = {task.asks: issue_invitations(task, N) for task in (REPORTS, VOTES)}
    with Intake(path) as intake:
        for task in (REPORTS, VOTES):
            opened(intake, task, issued[task.asks])
    return issued


def opened(
    intake: Intake, task: Task, issued: list[Invitation], **changes: Any
) -> None:
    """Open the round named after its message."""
    given = {"pipeline": "p", "task": task, "needed": 4, "invitations": issued}
    intake.open_round(task.asks, **(given | changes))


def sealed(task: Task, invitation: Invitation, seed: int = 0) -> bytes:
    """Return the envelope of an honest client."""
    return seal_message(invitation, payload(task, invitation, seed))


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table."""
    db = sqlite3.connect(path)
    names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    found = {name: db.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}
    db.close()
    return found


def test_a_round_fills_and_is_closed(path: Path, invited: dict[str, Any]) -> None:
    """Complete at `needed`; closing names the set, twice the same, and is final."""
    sent = [payload(REPORTS, i, k) for k, i in enumerate(invited["report"][:5])]
    with Intake(path) as intake:
        for k, each in enumerate(sent):
            found = intake.round("report")
            assert (found.accepted, found.complete, found.closed) == (k, k >= 4, False)
            intake.take(seal_message(invited["report"][k], each), parse_message)
        first = intake.close("report")
        assert intake.close("report") == first == intake.round("report").accepted_digest
        assert intake.round("report").complete
        with pytest.raises(RefusedEnvelope, match="closed"):
            intake.take(sealed(REPORTS, invited["report"][5]), parse_message)
        (kept,) = rounds.kept(intake, "report", first)
        assert sorted(map(canonical_json, kept)) == sorted(map(canonical_json, sent))
        assert [r.id for r in intake.rounds("p")] == ["report", "vote"]
        assert intake.rounds("q") == []


def test_the_accepted_set_has_one_digest_in_whatever_order_it_came(
    tmp_path: Path,
) -> None:
    """And another one as soon as one message differs."""
    issued = issue_invitations(REPORTS, N)
    sent = [sealed(REPORTS, i, k) for k, i in enumerate(issued)]
    other = [*sent[1:], sealed(REPORTS, issued[0], 99)]
    digests = []
    for k, order in enumerate([sent, sent[::-1], other]):
        with Intake(tmp_path / f"{k}.sqlite") as intake:
            opened(intake, REPORTS, issued)
            for data in order:
                intake.take(data, parse_message)
            digests.append(intake.close("report"))
    assert digests[0] == digests[1] != digests[2]


def test_ten_ways_of_tampering_are_refused_for_ten_reasons(
    path: Path, invited: dict[str, Any]
) -> None:
    """Each with a reason of its own; nothing of it is stored."""
    report, used, *_ = invited["report"]
    vote = invited["vote"][0]
    (stranger,) = issue_invitations(REPORTS, 1)
    good = payload(REPORTS, report)
    honest = seal_message(report, good)
    tampered: list[bytes] = [
        honest[:-30],
        b"not an envelope",
        edited(honest, lambda e: e.update(name="me")),
        edited(honest, lambda e: e["header"].update(alg="none")),
        edited(honest, lambda e: e.update(task="0" * 64)),
        sealed(REPORTS, stranger),
        sealed(REPORTS, used),
        edited(honest, lambda e: e["header"].update(kid=vote.id)),
        edited(honest, lambda e: e["message"]["z"].__setitem__(0, 0.0)),
        seal_message(report, good | {"z": [0.3, *good["z"][1:]]}),
        seal_message(report, good | {"z": good["z"][1:]}),
        seal_message(report, good | {"label": 2}),
        seal_message(vote, {"learner": (vote.about + 1) % 3, "positive": True}),
        edited(honest, lambda e: e["message"].update(z=[10**400])),
    ]
    with Intake(path) as intake:
        intake.take(sealed(REPORTS, used), parse_message)
        reasons = []
        for data in tampered:
            with pytest.raises(RefusedEnvelope) as caught:
                intake.take(data, parse_message)
            reasons.append(str(caught.value))
        assert len(set(reasons)) == len(reasons) == 14
        assert [r.accepted for r in intake.rounds()] == [1, 0]
        intake.take(honest, parse_message)  # its invitation is still good
        intake.close("report")
        with pytest.raises(RefusedEnvelope, match="closed"):
            intake.take(sealed(REPORTS, invited["report"][2]), parse_message)


def test_a_refusal_changes_nothing(path: Path, invited: dict[str, Any]) -> None:
    """Not even when the check itself breaks: all of a transaction, or nothing."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    before = contents(path)
    with Intake(path) as intake:
        with pytest.raises(ZeroDivisionError):
            intake.take(sealed(REPORTS, invited["report"][0]), broken)
        assert contents(path) == before
        intake.take(sealed(REPORTS, invited["report"][0]), parse_message)


def test_nothing_links_a_message_to_its_invitation(
    path: Path, invited: dict[str, Any]
) -> None:
    """Messages have random keys, no invitation and no time; the log is gone, too."""
    with Intake(path) as intake:
        for k, each in enumerate(invited["report"]):
            intake.take(sealed(REPORTS, each, k), parse_message)
        intake.close("report")
    stored = contents(path)
    assert {name for (name, *_) in _columns(path, "messages")} == {
        "row",
        "round",
        "payload",
        "batch",
    }
    keys = [row for row, *_ in stored["messages"]]
    assert len(set(keys)) == N
    assert max(keys) > 2**40
    marks = {tuple(row[1:2] + row[3:]) for row in stored["invitations"] if row[1] == 1}
    assert marks == {(1, None, 1, None)}
    for _, _, text, _ in stored["messages"]:
        assert set(json.loads(text)) == {"z", "label"}
        assert not any(each.id in text for each in invited["report"])
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def _columns(path: Path, table: str) -> list[tuple[str]]:
    db = sqlite3.connect(path)
    found = db.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchall()
    db.close()
    return found


def test_messages_come_out_in_random_order(path: Path, invited: dict[str, Any]) -> None:
    """Each time another one; and the order of keys is not the order of arrival."""
    with Intake(path) as intake:
        for k, each in enumerate(invited["report"]):
            intake.take(sealed(REPORTS, each, k), parse_message)
        batches = [*intake.batches("report", intake.close("report")).values()]
    params = {"protocol": REPORTS.protocol, "message": "report"}
    made = (_message_table(REPORTS, params, None, batches) for _ in range(30))
    assert len({str(table["z"]) for table in made}) > 20


def test_opening_a_round_again_changes_what_is_needed_and_nothing_else(
    path: Path, invited: dict[str, Any]
) -> None:
    """A killed run opens it again; a round that differs is a bug, not a new round."""
    with Intake(path) as intake:
        before = contents(path)
        opened(intake, REPORTS, invited["report"])
        assert contents(path) == before
        opened(intake, REPORTS, invited["report"], needed=1)
        assert intake.round("report").needed == 1
        with pytest.raises(UserError, match="needs 7 messages, but invites only 6"):
            opened(intake, REPORTS, invited["report"], needed=7)
        for change in (
            {"pipeline": "q"},
            {"invitations": issue_invitations(REPORTS, N)},
            {"invitations": invited["vote"]},
        ):
            with pytest.raises(InternalError):
                opened(intake, REPORTS, invited["report"], **change)


def test_an_empty_round_and_an_unknown_one_are_not_closed(
    path: Path, invited: dict[str, Any]
) -> None:
    """No digest names nothing."""
    with Intake(path) as intake:
        with pytest.raises(UserError, match="no message yet"):
            intake.close("report")
        with pytest.raises(UserError, match="Did you mean 'report'"):
            intake.close("reports")
        assert not intake.round("report").closed
        assert intake.round("reports") is None


@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_a_file_that_is_no_intake_is_refused_and_kept(
    path: Path, invited: object, damage: Damage, said: str
) -> None:
    """It is never replaced by an empty one, in which every reuse would be new."""
    damage(path)
    before = content(path)
    with pytest.raises(UserError, match=f"the intake .*{said}") as raised:
        Intake(path)
    assert str(path) in str(raised.value)
    assert content(path) == before


@pytest.mark.parametrize("text", ["'{'", "CAST(x'7bff' AS TEXT)"])
def test_a_round_that_cannot_be_read_is_damage(
    path: Path, invited: object, text: str
) -> None:
    """Text that is no JSON, or no text at all: said of the file, not as a crash."""
    execute(f"UPDATE rounds SET task = {text}")(path)
    with Intake(path) as intake:
        for read in (intake.rounds, lambda: intake.round("report")):
            with pytest.raises(UserError, match=r"the intake .*damaged"):
                read()


def test_the_file_is_for_its_owner_only(path: Path, invited: object) -> None:
    """It holds the keys of invitations."""
    assert path.stat().st_mode & 0o077 == 0
