"""What the bytes of the intake's file tell, and what a sealed round hides."""

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.intake.admission import RefusedEnvelope
from curvote.intake.box import Intake
from curvote.messages.message import parse_message
from curvote.wire.envelope import (
    Invitation,
    is_sealed,
    issue_invitations,
    new_private_key,
    open_sealed,
    public_key,
    seal_message,
    seal_to_key,
)
from curvote.wire.strict_json import canonical_json
from tests.rounds import REPORTS, VOTES, old, payload
from tests.server.test_intake import contents

N = 200


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where an intake stands."""
    return tmp_path / "intake.sqlite"


def filled(
    path: Path, came: list[tuple[int, bytes]], invited: list[Invitation]
) -> Iterator[None]:
    """Take messages in under given keys, each in its own transaction."""
    keys = iter([key for key, _ in came])
    with pytest.MonkeyPatch.context() as patch, Intake(path) as intake:
        patch.setattr(secrets, "randbits", lambda _: next(keys))
        given = {"pipeline": "p", "needed": 1, "invitations": invited}
        intake.open_round("report", task=REPORTS, **given)
        for _, data in came:
            intake.take(data, parse_message)
            yield


def test_the_bytes_of_the_file_do_not_depend_on_the_order_of_arrival(
    tmp_path: Path,
) -> None:
    """Two orders, one file: where a message stands follows from its random key alone.

    SQLite fills a page from its end in the order in which rows come.
    """
    invited = issue_invitations(REPORTS, N)
    keys = [secrets.randbits(63) for _ in invited]
    sent = [seal_message(i, payload(REPORTS, i, k)) for k, i in enumerate(invited)]
    came = list(zip(keys, sent, strict=True))
    files = []
    for name, order in (("a", came), ("b", came[::-1]), ("c", sorted(came))):
        for _ in filled(tmp_path / name, order, invited):
            pass
        files.append((tmp_path / name).read_bytes())
        assert [p.name for p in tmp_path.glob(f"{name}*")] == [name]
    assert files[0] == files[1] == files[2]


def test_a_killed_take_leaves_no_order_once_another_ended(path: Path) -> None:
    """Even one that took nothing: free pages and journal are gone, too."""
    invited = issue_invitations(REPORTS, N)
    came = [
        (k + 1, seal_message(i, payload(REPORTS, i, k))) for k, i in enumerate(invited)
    ]
    for _ in filled(path, came, invited):
        pass
    tidy = path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        rows = db.execute("SELECT * FROM messages").fetchall()
        db.execute("DELETE FROM messages")
        for row in reversed(rows):  # as an untidied file would have them
            db.execute("INSERT INTO messages VALUES (?, ?, ?, ?)", row)
    assert path.read_bytes()[4096:] != tidy[4096:]
    with Intake(path) as intake, pytest.raises(RefusedEnvelope):
        intake.take(b"nothing", parse_message)
    assert path.read_bytes()[4096:] == tidy[4096:]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_whoever_still_has_the_file_open_keeps_no_journal(path: Path) -> None:
    """Its pages would tell which invitation and which message changed together."""
    invited = issue_invitations(REPORTS, 3)
    sent = [seal_message(i, payload(REPORTS, i, k)) for k, i in enumerate(invited)]
    with Intake(path) as watching:
        assert watching.rounds() == []
        for _ in filled(path, [*enumerate(sent)], invited):
            pass
        assert path.with_name(f"{path.name}-wal").stat().st_size == 0
        assert watching.round("report").accepted == 3


def test_both_formats_are_taken_in(path: Path) -> None:
    """Whoever was invited before the new format answers in the old one, once."""
    new, aged = (
        issue_invitations(REPORTS, 1),
        [old(i) for i in issue_invitations(REPORTS, 1)],
    )
    good = payload(REPORTS, new[0])
    with Intake(path) as intake:
        given = {"pipeline": "p", "needed": 1, "invitations": new + aged}
        intake.open_round("report", task=REPORTS, **given)
        crossed = Invitation(**(vars(new[0]) | {"key": new[0].key[:32]}))
        longer = Invitation(**(vars(aged[0]) | {"key": aged[0].key * 2}))
        for other in (crossed, longer):
            with pytest.raises(RefusedEnvelope, match="seal is wrong"):
                intake.take(seal_message(other, good), parse_message)
        for invitation in (*new, *aged):
            intake.take(seal_message(invitation, good), parse_message)
            with pytest.raises(RefusedEnvelope, match="used before"):
                intake.take(seal_message(invitation, good), parse_message)
        intake.close("report")
    texts = {row[2] for row in contents(path)["messages"]}
    assert texts == {canonical_json(good).decode()}


# ------------------------------------------------------------------------- sealed
@pytest.fixture
def secret(path: Path) -> tuple[list[Invitation], str]:
    """Open a sealed round of reports and one of votes; return the first's answers."""
    invited = issue_invitations(REPORTS, 3)
    with Intake(path) as intake:
        for name, task, i in (
            ("report", REPORTS, invited),
            ("vote", VOTES, issue_invitations(VOTES, 3)),
        ):
            given = {
                "pipeline": "p",
                "needed": 1,
                "invitations": i,
                "seal": new_private_key(),
            }
            intake.open_round(name, task=task, **given)
        return invited, intake.round("report").seal_to


def test_the_carrier_of_a_sealed_envelope_learns_its_size_only(
    secret: tuple[list[Invitation], str],
) -> None:
    """Neither invitation nor message is in it; twice sealed is twice different."""
    (invitation, *_), seal_to = secret
    sizes = set()
    for z in ([0.0] * 4, [-1.2345678901234567e-300] * 4):
        data = seal_message(invitation, {"z": z, "label": 1}, seal_to)
        assert is_sealed(data)
        assert data.count(b"\n") == 1
        for hidden in (invitation.id, invitation.key, invitation.task, "label"):
            assert hidden.encode() not in data
        sizes.add(len(data))
        assert data != seal_message(invitation, {"z": z, "label": 1}, seal_to)
    assert len(sizes) == 1
    assert invitation.id not in invitation.file_name


def test_a_sealed_round_takes_what_is_sealed_to_it(
    path: Path, secret: tuple[list[Invitation], str]
) -> None:
    """And nothing else: no open one, no other round's, none that was altered."""
    (one, two, _), seal_to = secret
    good = payload(REPORTS, one)
    data = seal_message(one, good, seal_to)
    with Intake(path) as intake:
        other = intake.round("vote").seal_to
        assert len({seal_to, other}) == 2
        for odd, reason in (
            (seal_message(one, good), "not sealed"),
            (seal_message(one, good, other), "another round's seal"),
            (seal_message(one, good, public_key(new_private_key())), "unreadable"),
            (data[:200] + bytes([data[200] ^ 1]) + data[201:], "unreadable"),
            (data.replace(seal_to.encode(), other.encode()), "unreadable"),
            (data[:-1], "unreadable"),
            (data.replace(b",", b", "), "unreadable"),
            (seal_to_key(b"no envelope", seal_to), "unreadable"),
            (seal_to_key(data, seal_to), "unreadable"),
            (seal_to_key(b"x" * 2**20, seal_to), "unreadable"),
        ):
            with pytest.raises(RefusedEnvelope) as caught:
                intake.take(odd, parse_message)
            assert caught.value.reason == reason
        intake.take(data, parse_message)
        with pytest.raises(RefusedEnvelope, match="used before"):
            intake.take(
                seal_message(one, good, seal_to), parse_message
            )  # in other bytes, yet the same
        intake.take(seal_message(two, good, seal_to), parse_message)
        assert intake.round("report").accepted == 2


def test_a_round_keeps_its_key(
    path: Path, secret: tuple[list[Invitation], str]
) -> None:
    """Whatever the pipeline says by now; its private half is in no other file."""
    invited, seal_to = secret
    with Intake(path) as intake:
        given = {"pipeline": "p", "needed": 2, "invitations": invited}
        intake.open_round("report", task=REPORTS, **given)
        assert intake.round("report").seal_to == seal_to
        assert seal_to not in repr(contents(path))
    assert path.stat().st_mode & 0o077 == 0


def test_a_closed_round_forgets_its_key(
    path: Path, secret: tuple[list[Invitation], str]
) -> None:
    """Not a byte of it is left: what a carrier has kept stays closed for ever."""
    (one, two, _), seal_to = secret
    (key,) = (row[7] for row in contents(path)["rounds"] if row[1] == "report")
    assert public_key(key) == seal_to
    assert key.encode() in path.read_bytes()
    with Intake(path) as intake:
        intake.take(seal_message(one, payload(REPORTS, one), seal_to), parse_message)
        intake.close("report")
        with pytest.raises(RefusedEnvelope, match="no key of an open round"):
            intake.take(
                seal_message(two, payload(REPORTS, two), seal_to), parse_message
            )
        with pytest.raises(RefusedEnvelope, match="closed"):
            intake.take(seal_message(two, payload(REPORTS, two)), parse_message)
        assert intake.round("vote").seal_to
    assert key.encode() not in path.read_bytes()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "odd",
    [
        b'{"sealed":',
        b'{"sealed":"","to":""}\n',
        b'{"sealed":"","to":"' + b"0" * 64 + b'"}\n',
        b'{"sealed":"\\ud800","to":"' + b"0" * 64 + b'"}\n',
        b'{"sealed":1,"to":"' + b"0" * 64 + b'"}\n',
        b'{"sealed":"AB","to":"' + b"0" * 64 + b'"}\n',
    ],
)
def test_what_is_no_sealed_envelope_is_refused(odd: bytes) -> None:
    """Never by another error."""
    with pytest.raises(UserError):
        open_sealed(odd, lambda _: new_private_key())


def test_nothing_is_sealed_to_what_is_no_key() -> None:
    """A point of small order would make a key that everybody knows."""
    for odd in ("00" * 32, "01" + "00" * 31):
        with pytest.raises(UserError, match="no X25519 key"):
            seal_to_key(b"envelope", odd)


def test_a_carrier_cannot_exchange_the_task_for_an_unsealed_one(
    secret: tuple[list[Invitation], str],
) -> None:
    """The same server may ask the same elsewhere without a seal, and sign that, too."""
    (invitation, *_), seal_to = secret
    bound = replace(invitation, seal_to=seal_to)
    assert Invitation.from_json(bound.to_json()) == bound
    assert is_sealed(seal_message(bound, {}, seal_to))
    for other in (None, public_key(new_private_key())):
        with pytest.raises(UserError, match="exchanged the task"):
            seal_message(bound, {}, other)
