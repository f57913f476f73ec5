"""Rounds of an intake, and the admission of envelopes to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from curvote.base.errors import UserError
from curvote.chain import lookup
from curvote.intake.store import PostgresStore, SQLiteStore
from curvote.learning.sums import SumForm
from curvote.mechanisms.registry import MECHANISMS
from curvote.wire import envelope
from curvote.wire.envelope import Envelope, public_key
from curvote.wire.key_tree import InvitationTree
from curvote.wire.task import AnyTask

Payload = dict[str, Any]

# A round's columns, how many were invited and accepted, the sizes of its batches: as
# one text, which each database joins in its own way.
SELECT_ROUNDS: Final = """SELECT id, pipeline, task, digest, needed, accepted_digest,
(SELECT count(*) FROM invitations i WHERE i.round = r.number),
(SELECT count(*) FROM messages m WHERE m.round = r.number)
+ coalesce((SELECT sum(n) FROM sums s WHERE s.round = r.number), 0),
(SELECT {sizes} FROM (SELECT batch, sum(n) AS n FROM (
  SELECT batch, 1 AS n FROM messages m WHERE m.round = r.number
  UNION ALL SELECT batch, n FROM sums s WHERE s.round = r.number) AS u
  WHERE batch IS NOT NULL GROUP BY batch ORDER BY batch) AS b),
seal, keep, tree, receipts
FROM rounds r"""


@dataclass(frozen=True)
class Round:
    """One question to invited clients, and the number of answers.

    ``messages_digest`` is the task's. ``needed`` messages make it complete;
    ``accepted_digest`` names the accepted set once the round is closed. ``batches``
    counts the messages that were folded in, each time. Envelopes are sealed to
    ``seal_to``, None: to none. ``keep`` says how messages are kept: as "rows", as
    "sums" (see `SumForm`), or, None, as rows of before there was a choice. Of one that
    gives ``receipts`` the leaf of each accepted envelope is kept, too.
    """

    id: str
    pipeline: str
    task: AnyTask
    digest: str
    issued: int
    accepted: int
    needed: int
    accepted_digest: str | None
    batches: tuple[int, ...] = ()
    seal_to: str | None = None
    keep: str | None = None
    receipts: bool = False

    @classmethod
    def from_row(cls, row: Any) -> Round:
        """Return the round of one row of `SELECT_ROUNDS`."""
        name, pipeline, task, digest, needed, final, *counted = row
        issued, accepted, sizes, seal, keep, tree, receipts = counted
        issued = read_tree(tree).count if tree else issued
        batches = tuple(int(size) for size in (sizes or "").split(",") if size)
        seal_to = public_key(seal) if seal else None
        identity = name, pipeline, read_task(task), digest
        counts = issued, int(accepted), needed
        more = seal_to, keep, receipts is not None
        return cls(*identity, *counts, final, batches, *more)

    @property
    def asks(self) -> str:
        """The name of the message that the round's task asks for."""
        return self.task.asks

    @property
    def sum_form(self) -> SumForm | None:
        """What is summed of its messages; None: they are kept as rows."""
        return SumForm.from_text(self.keep)

    @property
    def closed(self) -> bool:
        """Whether the accepted set is final."""
        return self.accepted_digest is not None

    @property
    def complete(self) -> bool:
        """Whether the round is closed or has enough messages."""
        return self.closed or self.accepted >= self.needed

    @property
    def folded(self) -> int:
        """The number of messages that were folded in."""
        return sum(self.batches)

    @property
    def waiting(self) -> int:
        """The number of messages accepted since."""
        return self.accepted - self.folded


@lru_cache(maxsize=8)
def read_task(text: str) -> AnyTask:
    """Return the task that an intake stores as JSON."""
    return lookup.read_task(json.loads(text))


@lru_cache(maxsize=8)
def read_tree(text: str) -> InvitationTree:
    """Return the tree of invitations that an intake stores as JSON."""
    return InvitationTree.from_json(json.loads(text))


# The message may be one that was accepted: such an envelope should not be kept.
USED_INVITATION: Final = "used invitation"
# Nor should one of a record that has its message: together both tell more of it.
RECORD_ANSWERED: Final = "record answered"
# About what a message must be, and the message as it was sent.
SubjectPayload = tuple[int | str | None, Payload]
# Returns each message as it is to be kept; a UserError in its place refuses it.
BatchCheck = Callable[
    [AnyTask, Sequence[SubjectPayload]], Sequence[Payload | UserError]
]
# The same for one: it returns the message, or raises the UserError.
MessageCheck = Callable[[AnyTask, int | str | None, Payload], Payload]

# `row` is named in quotes: it is a word of SQL.
SELECT_INVITATIONS = """SELECT i.id, i.key, i.about, i.record, i.used, r.number, r.id,
r.digest,
r.accepted_digest IS NOT NULL, r.seal,
i.record IS NOT NULL AND EXISTS (SELECT 1 FROM invitations o WHERE o.round = i.round
AND o.record IS NOT NULL AND o.record = i.record AND o.used = 1)
FROM invitations i JOIN rounds r ON r.number = i.round WHERE i.id IN ({marks})"""
SELECT_TREES = """SELECT number, id, digest, accepted_digest IS NOT NULL, seal, tree
FROM rounds WHERE tree IS NOT NULL ORDER BY number"""
_SELECT_MARKS = """SELECT block, bits FROM marks
WHERE round = ? AND block IN ({marks})"""
# So many places of a tree have their marks in one row.
BLOCK: Final = 1 << 12


# All that an envelope can be refused for.
Reason = Literal[
    "unreadable",
    "unknown invitation",
    "another round",
    "unknown task",
    "wrong seal",
    "not sealed",
    "another round's seal",
    "used invitation",
    "record answered",
    "round closed",
    "impossible message",
    "another record",
    "unknown record",
]


class RefusedEnvelope(UserError):  # noqa: N818 - what happened to an envelope
    """Error for an envelope that is not accepted, with a short ``reason``.

    Of one that is not ``storable`` nothing may be stored: it may be a copy of an
    accepted one, and even its digest would tell who sent that. If it is one, and came
    with the salt of then, ``receipt`` is that of then.
    """

    receipt: dict[str, Any] | None = None

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.storable = reason not in {USED_INVITATION, RECORD_ANSWERED}


@dataclass(frozen=True)
class AcceptedMessage:
    """An accepted message, its round's number, its invitation and place in a tree."""

    invitation: str
    round: int
    payload: Payload
    place: int | None


@dataclass(frozen=True)
class OpenedEnvelope:
    """A readable envelope, and the private key that it was sealed to."""

    envelope: Envelope
    private: str | None


@dataclass(frozen=True)
class _InvitationRow:
    """The intake's row of an envelope's invitation."""

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
    place: int | None = None

    @property
    def subject(self) -> int | str | None:
        """The candidate or record that the message must be about."""
        return self.about if self.record is None else self.record

    @property
    def unique_key(self) -> tuple[Any, ...]:
        """The key of which at most one message is accepted."""
        return (self.number, self.record) if self.record is not None else (self.id,)


def open_envelopes(
    envelopes: Iterable[bytes], seals: Iterable[str]
) -> list[OpenedEnvelope | RefusedEnvelope]:
    """Return the opened envelopes, or why they cannot be read.

    Nothing of it is believed yet.
    """
    private_keys = {envelope.public_key(key): key for key in seals}
    opened: list[OpenedEnvelope | RefusedEnvelope] = []
    for data in envelopes:
        text, private = data, None
        try:
            if envelope.is_sealed(data):
                to, text = envelope.open_sealed(data, private_keys.get)
                private = private_keys[to]
            opened.append(OpenedEnvelope(envelope.read_envelope(text), private))
        except UserError as error:
            opened.append(RefusedEnvelope("unreadable", str(error)))
    return opened


def named_invitations(
    envelopes: Iterable[OpenedEnvelope | RefusedEnvelope],
) -> list[str]:
    """Return the distinct invitations that envelopes name, sorted."""
    opened = (item for item in envelopes if isinstance(item, OpenedEnvelope))
    return sorted({item.envelope.invitation for item in opened})


class AdmissionBatch:
    """A batch of envelopes that pass through all checks.

    ``store`` holds the intake's rows. An invitation that comes twice counts once: the
    first good envelope, as if each had come alone, in this order.
    """

    def __init__(
        self,
        envelopes: Sequence[OpenedEnvelope | RefusedEnvelope],
        check: BatchCheck,
        store: SQLiteStore | PostgresStore,
    ) -> None:
        self._envelopes, self._check, self._rows = envelopes, check, store.rows
        self._invited: dict[str, _InvitationRow] = {}
        names = named_invitations(envelopes)
        store.lock(names)
        if names:
            query = SELECT_INVITATIONS.format(marks=", ".join("?" * len(names)))
            invited_rows = (_InvitationRow(*row) for row in store.rows(query, *names))
            self._invited = {row.id: row for row in invited_rows}
            self._read_trees(store, [n for n in names if n not in self._invited])
        self._used_keys: set[tuple[Any, ...]] = set()

    def _read_trees(
        self, store: SQLiteStore | PostgresStore, names: Sequence[str]
    ) -> None:
        """Look for invitations among those of trees, which no row holds."""
        trees = store.rows(SELECT_TREES) if names else []
        for number, round_id, digest, closed, seal, text in trees:
            tree = read_tree(text)
            places = {name: tree.place(name) for name in names}
            present = {name: p for name, p in places.items() if p is not None}
            marks = read_marks(store, number, present.values())
            for name, place in present.items():
                invited = tree.invitation(place)
                used = bool(marks[place // BLOCK][place % BLOCK // 8] >> place % 8 & 1)
                identity: Any = name, invited.key, invited.about, None, used
                state: Any = number, round_id, digest, closed, seal, False, place
                self._invited[name] = _InvitationRow(*identity, *state)

    def outcomes(self) -> list[AcceptedMessage | RefusedEnvelope]:
        """Return for each envelope the accepted message, or why it is refused."""
        waiting = list(range(len(self._envelopes)))
        outcomes: dict[int, AcceptedMessage | RefusedEnvelope] = {}
        while waiting:
            # The first envelope of each invitation; its repeats wait for the next pass.
            keys: set[tuple[Any, ...]] = set()
            current: list[int] = []
            later: list[int] = []
            for place in waiting:
                invited = self._find_invitation(place)
                again = invited is not None and invited.unique_key in keys
                (later if again else current).append(place)
                if invited is not None:
                    keys.add(invited.unique_key)
            good: dict[int, list[int]] = {}
            for place in current:
                try:
                    number = self._valid_invitation(place).number
                except RefusedEnvelope as refused:
                    outcomes[place] = refused
                else:
                    good.setdefault(number, []).append(place)
            for number, places in good.items():
                outcomes |= zip(places, self._check_round(number, places), strict=True)
            waiting = later
        for place, outcome in outcomes.items():
            invited = self._find_invitation(place)
            if isinstance(outcome, RefusedEnvelope) and invited is not None:
                used = invited.used or invited.answered
                if used or invited.unique_key in self._used_keys:
                    outcome.storable = False
        return [outcomes[place] for place in range(len(self._envelopes))]

    def _find_invitation(self, place: int) -> _InvitationRow | None:
        item = self._envelopes[place]
        if isinstance(item, RefusedEnvelope):
            return None
        return self._invited.get(item.envelope.invitation)

    def _valid_invitation(self, place: int) -> _InvitationRow:
        """Return the invitation of a genuine envelope; else `RefusedEnvelope`.

        Only the client who sealed it for this round is told whether the invitation was
        used.
        """
        opened = self._envelopes[place]
        if isinstance(opened, RefusedEnvelope):
            raise opened
        invited = self._invited.get(opened.envelope.invitation)
        if invited is None:
            words = f"invitation {opened.envelope.invitation} was never issued here."
            raise RefusedEnvelope("unknown invitation", words)
        content = opened.envelope
        if content.task != invited.digest:
            query = "SELECT id FROM rounds WHERE digest = ?"
            if self._rows(query, content.task):
                words = (
                    f"an invitation to round {invited.round}, used for another round."
                )
                raise RefusedEnvelope("another round", words)
            words = f"task {content.task[:12]} has no round here."
            raise RefusedEnvelope("unknown task", words)
        if not envelope.is_genuine(content, invited.key):
            words = "the seal is wrong: something was altered, or the key is another."
            raise RefusedEnvelope("wrong seal", words)
        if opened.private != invited.seal:
            reason: Reason = "another round's seal" if opened.private else "not sealed"
            words = (
                f"round {invited.round} takes envelopes that are sealed to its own key."
            )
            raise RefusedEnvelope(reason, words)
        if invited.used or (invited.id,) in self._used_keys:
            raise RefusedEnvelope(USED_INVITATION, "this invitation was used before.")
        if invited.answered or invited.unique_key in self._used_keys:
            words = "the record has its message, which came by another invitation."
            raise RefusedEnvelope(RECORD_ANSWERED, words)
        if invited.closed:
            raise RefusedEnvelope("round closed", f"round {invited.round} is closed.")
        return invited

    def _check_round(
        self, number: int, places: list[int]
    ) -> Iterator[AcceptedMessage | RefusedEnvelope]:
        ((task,),) = self._rows("SELECT task FROM rounds WHERE number = ?", number)
        round_task = read_task(task)
        plugin = MECHANISMS.origin(round_task.mechanism)
        pairs: list[tuple[Envelope, _InvitationRow]] = []
        for place in places:
            item, invitation = self._envelopes[place], self._find_invitation(place)
            if isinstance(item, OpenedEnvelope) and invitation is not None:
                pairs.append((item.envelope, invitation))
        messages = [(invited.subject, content.payload) for content, invited in pairs]
        results = self._check(round_task, messages)
        for (content, invited), message in zip(pairs, results, strict=True):
            if bool(content.unaudited) != bool(plugin):
                words = (
                    f"the task's mechanism is {plugin or 'curvote'}'s, but the envelope"
                    f" is marked as {content.unaudited or 'curvote'}'s."
                )
                yield RefusedEnvelope("impossible message", words)
                continue
            if isinstance(message, UserError):
                reason: Reason = "impossible message"
                named = content.payload.get("record")
                # Any text may stand there; of one with a NUL, PostgreSQL cannot even be
                # asked.
                is_text = isinstance(named, str) and named.isprintable()
                if is_text and invited.record not in {None, named}:
                    query = "SELECT 1 FROM invitations WHERE round = ? AND record = ?"
                    matching = self._rows(query, invited.number, named)
                    reason = "another record" if matching else "unknown record"
                yield RefusedEnvelope(reason, str(message))
                continue
            self._used_keys |= {invited.unique_key, (invited.id,)}
            yield AcceptedMessage(invited.id, invited.number, message, invited.place)


def read_marks(
    store: SQLiteStore | PostgresStore, number: int, places: Iterable[int]
) -> dict[int, bytearray]:
    """Return the marks of the blocks in which places stand, locked, a bit a place."""
    blocks = sorted({place // BLOCK for place in places})
    marks = {block: bytearray(BLOCK // 8) for block in blocks}
    if blocks:
        store.lock_marks(number, blocks)
        query = _SELECT_MARKS.format(marks=", ".join("?" * len(blocks)))
        for block, bits in store.rows(query, number, *blocks):
            marks[block][: len(bits)] = bits
    return marks
