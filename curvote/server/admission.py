"""What an envelope must be to be accepted, and how it is said that it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from curvote import envelope, sealed
from curvote.envelope import Envelope
from curvote.errors import UserError
from curvote.server.rounds import Payload, read_task
from curvote.strict_json import canonical
from curvote.task import Asked

# The message may be one that was accepted: such an envelope should not be kept.
USED = "used invitation"
# Nor should one of a record that has its message: together both tell more of it.
ANSWERED = "record answered"
# Returns the message as it is to be kept; a UserError refuses it.
Check = Callable[[Asked, int | str | None, Payload], Payload]
Rows = Callable[..., list[Any]]

_INVITED = """SELECT key, about, record, used, number, rounds.id, digest, task,
accepted_digest IS NOT NULL, seal FROM invitations
JOIN rounds ON rounds.number = round WHERE invitations.id = ?"""


class Refused(UserError):  # noqa: N818 - what happened to an envelope
    """An envelope is not accepted; ``reason`` is the short form, for counts.

    It is for the server's operator: a client is told that it came, nothing else.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Admitted:
    """A message to keep as ``text``, its round's number, the invitation to mark."""

    invitation: str
    round: int
    text: str


@dataclass(frozen=True)
class _Invited:
    """What the file knows about the invitation of an envelope."""

    key: str
    about: int | None
    record: str | None
    used: bool
    number: int
    round: str
    digest: str
    task: str
    closed: bool
    seal: str | None


def admitted(data: bytes, check: Check, rows: Rows) -> Admitted:
    """Return what to keep of an envelope, or raise `Refused`.

    ``rows(query, *values)`` reads the intake's file.
    """
    inner, private = _unsealed(data, rows)
    sent = _read(inner)
    invited = _invited(sent, rows)
    _check_invitation(sent, invited, rows)
    if private != invited.seal:
        raise Refused(
            "another round's seal" if private else "not sealed",
            f"round {invited.round} takes envelopes that are sealed to its own key.",
        )
    kept = canonical(_checked(sent, invited, check, rows)).decode()
    return Admitted(sent.invitation, invited.number, kept)


def _unsealed(data: bytes, rows: Rows) -> tuple[bytes, str | None]:
    """Return the envelope inside, and the private key that opened it."""
    if not sealed.is_sealed(data):
        return data, None
    keys = [row[0] for row in rows("SELECT seal FROM rounds WHERE seal IS NOT NULL")]
    known = {sealed.public(key): key for key in keys}
    try:
        to, inner = sealed.opened(data, known.get)
    except UserError as error:
        raise Refused("unreadable", str(error)) from None
    return inner, known[to]


def _read(data: bytes) -> Envelope:
    try:
        return envelope.read(data)
    except UserError as error:
        raise Refused("unreadable", str(error)) from None


def _invited(sent: Envelope, rows: Rows) -> _Invited:
    found = rows(_INVITED, sent.invitation)
    if not found:
        raise Refused(
            "unknown invitation",
            f"invitation {sent.invitation} was never issued here.",
        )
    return _Invited(*found[0])


def _check_invitation(sent: Envelope, invited: _Invited, rows: Rows) -> None:
    if invited.used:
        raise Refused(USED, "this invitation was used before.")
    if _records(invited, invited.record, rows, used=True):
        raise Refused(
            ANSWERED, "the record has its message, which came by another invitation."
        )
    if sent.task != invited.digest:
        if rows("SELECT id FROM rounds WHERE digest = ?", sent.task):
            raise Refused(
                "another round",
                f"an invitation to round {invited.round}, used for another round.",
            )
        raise Refused("unknown task", f"task {sent.task[:12]} has no round here.")
    if invited.closed:
        raise Refused("round closed", f"round {invited.round} is closed.")
    if not envelope.genuine(sent, invited.key):
        raise Refused(
            "wrong seal",
            "the seal is wrong: something was altered, or the key is another.",
        )


def _checked(sent: Envelope, invited: _Invited, check: Check, rows: Rows) -> Payload:
    subject = invited.about if invited.record is None else invited.record
    try:
        return check(read_task(invited.task), subject, sent.payload)
    except UserError as error:
        raise Refused(_reason(sent, invited, rows), str(error)) from None


def _reason(sent: Envelope, invited: _Invited, rows: Rows) -> str:
    named = sent.payload.get("record")
    other = isinstance(named, str) and named != invited.record
    if invited.record is None or not other:
        return "impossible message"
    return "another record" if _records(invited, named, rows) else "unknown record"


def _records(
    invited: _Invited, record: str | None, rows: Rows, *, used: bool = False
) -> bool:
    """Say whether a round asks about a record, or already ``used`` such a question."""
    query = "SELECT 1 FROM invitations WHERE round = ? AND record = ? AND used >= ?"
    return record is not None and bool(rows(query, invited.number, record, int(used)))
