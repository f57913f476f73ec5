"""What an envelope must be to be accepted, and how it is said that it is not.

Envelopes are judged many at a time: each by itself, the messages of one task together
as arrays. What comes to nothing for one changes nothing for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
# All that an envelope can be refused for.
REASONS: Final = (
    "unreadable",
    "unknown invitation",
    "another round",
    "unknown task",
    "wrong seal",
    "not sealed",
    "another round's seal",
    USED,
    ANSWERED,
    "round closed",
    "impossible message",
    "another record",
    "unknown record",
)
# About what a message must be, and the message as it was sent.
Sent = tuple[int | str | None, Payload]
# Returns each message as it is to be kept; a UserError in its place refuses it.
Checks = Callable[[Asked, Sequence[Sent]], Sequence[Payload | UserError]]
# The same for one: it returns the message, or raises the UserError.
Check = Callable[[Asked, int | str | None, Payload], Payload]
Rows = Callable[..., list[Any]]

# `row` is named in quotes: it is a word of SQL.
INVITED = """SELECT i.id, i.key, i.about, i.record, i.used, r.number, r.id, r.digest,
r.accepted_digest IS NOT NULL, r.seal,
i.record IS NOT NULL AND EXISTS (SELECT 1 FROM invitations o WHERE o.round = i.round
AND o.record IS NOT NULL AND o.record = i.record AND o.used = 1)
FROM invitations i JOIN rounds r ON r.number = i.round WHERE i.id IN ({marks})"""


class Refused(UserError):  # noqa: N818 - what happened to an envelope
    """An envelope is not accepted; ``reason`` is the short form, for counts.

    Of one that is not ``kept`` nothing may be stored: it may be a copy of an accepted
    one, and even its digest would tell who sent that.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.kept = reason not in {USED, ANSWERED}


@dataclass(frozen=True)
class Admitted:
    """A message to keep as ``text``, its round's number, the invitation to mark."""

    invitation: str
    round: int
    text: str


@dataclass(frozen=True)
class Opened:
    """An envelope that could be read, and the private key that it was sealed to."""

    envelope: Envelope
    private: str | None


@dataclass(frozen=True)
class _Invited:
    """What the intake knows about the invitation of an envelope."""

    id: str
    key: str
    about: int | None
    record: str | None
    used: bool
    number: int
    round: str
    digest: str
    closed: bool
    seal: str | None
    answered: bool

    @property
    def subject(self) -> int | str | None:
        """What the message must be about."""
        return self.about if self.record is None else self.record

    @property
    def once(self) -> tuple[Any, ...]:
        """What at most one message is accepted of."""
        return (self.number, self.record) if self.record is not None else (self.id,)


def opened(sent: Iterable[bytes], seals: Iterable[str]) -> list[Opened | Refused]:
    """Return what each envelope holds; ``seals`` are the keys that rounds wait with.

    Nothing of it is believed yet.
    """
    known = {sealed.public(key): key for key in seals}
    return [_opened(data, known) for data in sent]


def _opened(data: bytes, known: dict[str, str]) -> Opened | Refused:
    private = None
    try:
        if sealed.is_sealed(data):
            to, data = sealed.opened(data, known.get)
            private = known[to]
        return Opened(envelope.read(data), private)
    except UserError as error:
        return Refused("unreadable", str(error))


def invitations(given: Iterable[Opened | Refused]) -> list[str]:
    """Return the invitations that envelopes name, each once, in their order."""
    return sorted({e.envelope.invitation for e in given if isinstance(e, Opened)})


def admitted(
    given: Sequence[Opened | Refused], checks: Checks, rows: Rows
) -> list[Admitted | Refused]:
    """Return for each envelope what to keep of it, or why nothing.

    ``rows(query, *values)`` reads the intake. An invitation that comes twice counts
    once: the first good envelope, as if each had come alone, in this order.
    """
    return _Judging(given, checks, rows).outcomes()


class _Judging:
    """Envelopes on their way through all checks."""

    def __init__(
        self, given: Sequence[Opened | Refused], checks: Checks, rows: Rows
    ) -> None:
        self._given, self._checks, self._rows = given, checks, rows
        self._invited = _invited(invitations(given), rows)
        self._taken: set[tuple[Any, ...]] = set()

    def outcomes(self) -> list[Admitted | Refused]:
        """Return what became of each."""
        waiting = list(range(len(self._given)))
        found: dict[int, Admitted | Refused] = {}
        while waiting:
            now, waiting = self._first(waiting)
            found |= self._round(now)
        for place, each in found.items():
            if isinstance(each, Refused) and self._used(place):
                each.kept = False
        return [found[place] for place in range(len(self._given))]

    def _used(self, place: int) -> bool:
        """Say whether a message came under an envelope's invitation, by now."""
        invited = self._of(place)
        if invited is None:
            return False
        return invited.used or invited.answered or invited.once in self._taken

    def _first(self, waiting: list[int]) -> tuple[list[int], list[int]]:
        """Return the first envelope of each invitation, and those that must wait."""
        seen: set[tuple[Any, ...]] = set()
        now: list[int] = []
        later: list[int] = []
        for place in waiting:
            invited = self._of(place)
            again = invited is not None and invited.once in seen
            (later if again else now).append(place)
            if invited is not None:
                seen.add(invited.once)
        return now, later

    def _of(self, place: int) -> _Invited | None:
        """Return what is known of an envelope's invitation, None if nothing is."""
        each = self._given[place]
        if isinstance(each, Refused):
            return None
        return self._invited.get(each.envelope.invitation)

    def _round(self, places: list[int]) -> dict[int, Admitted | Refused]:
        found: dict[int, Admitted | Refused] = {}
        good: dict[int, list[int]] = {}
        for place in places:
            try:
                invited = self._fit(place)
            except Refused as refused:
                found[place] = refused
            else:
                good.setdefault(invited.number, []).append(place)
        for number, mine in good.items():
            found |= zip(mine, self._checked(number, mine), strict=True)
        return found

    def _fit(self, place: int) -> _Invited:
        """Return the invitation of an envelope that may use it; else `Refused`."""
        given = self._given[place]
        if isinstance(given, Refused):
            raise given
        invited = self._invited.get(given.envelope.invitation)
        if invited is None:
            raise Refused(
                "unknown invitation",
                f"invitation {given.envelope.invitation} was never issued here.",
            )
        _refuse_forged(given, invited, self._rows)
        self._refuse_late(invited)
        return invited

    def _refuse_late(self, invited: _Invited) -> None:
        if invited.used or (invited.id,) in self._taken:
            raise Refused(USED, "this invitation was used before.")
        if invited.answered or invited.once in self._taken:
            raise Refused(
                ANSWERED,
                "the record has its message, which came by another invitation.",
            )
        if invited.closed:
            raise Refused("round closed", f"round {invited.round} is closed.")

    def _checked(self, number: int, places: list[int]) -> Iterator[Admitted | Refused]:
        """Yield the outcome of messages of one round, checked together."""
        ((task,),) = self._rows("SELECT task FROM rounds WHERE number = ?", number)
        pairs = [*self._pairs(places)]
        asked = [(invited.subject, sent.payload) for sent, invited in pairs]
        told = self._checks(read_task(task), asked)
        for (sent, invited), message in zip(pairs, told, strict=True):
            if isinstance(message, UserError):
                yield Refused(_reason(sent, invited, self._rows), str(message))
                continue
            self._taken |= {invited.once, (invited.id,)}
            text = canonical(message).decode()
            yield Admitted(invited.id, invited.number, text)

    def _pairs(self, places: list[int]) -> Iterator[tuple[Envelope, _Invited]]:
        for place in places:
            given, invited = self._given[place], self._of(place)
            if isinstance(given, Opened) and invited is not None:
                yield given.envelope, invited


def _invited(names: Sequence[str], rows: Rows) -> dict[str, _Invited]:
    if not names:
        return {}
    query = INVITED.format(marks=", ".join("?" * len(names)))
    return {found[0]: _Invited(*found) for found in rows(query, *names)}


def _refuse_forged(given: Opened, invited: _Invited, rows: Rows) -> None:
    """Refuse what the invited client has not sealed, to this round.

    Only then it is told whether its invitation was used: to nobody else.
    """
    sent = given.envelope
    if sent.task != invited.digest:
        if rows("SELECT id FROM rounds WHERE digest = ?", sent.task):
            raise Refused(
                "another round",
                f"an invitation to round {invited.round}, used for another round.",
            )
        raise Refused("unknown task", f"task {sent.task[:12]} has no round here.")
    if not envelope.genuine(sent, invited.key):
        raise Refused(
            "wrong seal",
            "the seal is wrong: something was altered, or the key is another.",
        )
    if given.private != invited.seal:
        raise Refused(
            "another round's seal" if given.private else "not sealed",
            f"round {invited.round} takes envelopes that are sealed to its own key.",
        )


def _reason(sent: Envelope, invited: _Invited, rows: Rows) -> str:
    named = sent.payload.get("record")
    # Any text may stand there; of one with a NUL, PostgreSQL cannot even be asked.
    other = isinstance(named, str) and named.isprintable() and named != invited.record
    if invited.record is None or not other:
        return "impossible message"
    query = "SELECT 1 FROM invitations WHERE round = ? AND record = ?"
    there = rows(query, invited.number, named)
    return "another record" if there else "unknown record"
