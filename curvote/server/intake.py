"""What the server takes in: each invited client's message once, apart from who sent it.

One SQLite file holds rounds, their invitations, and the accepted messages under random
keys. No column, no order and no time links a message to the invitation it came with.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from curvote import envelope, validate
from curvote.envelope import Envelope, Invitation
from curvote.errors import InternalError, UserError, did_you_mean
from curvote.server.intake_file import INTAKE
from curvote.task import Task

Payload = dict[str, Any]
# The message may be one that was accepted: such an envelope should not be kept.
USED = "used invitation"
Check = Callable[[Task, int | None, Payload], None]

_ROUNDS = """SELECT id, pipeline, task, digest, needed, accepted_digest,
(SELECT count(*) FROM invitations i WHERE i.round = r.number),
(SELECT count(*) FROM messages m WHERE m.round = r.number) FROM rounds r"""


class Refused(UserError):  # noqa: N818 - what happened to an envelope
    """An envelope is not accepted; ``reason`` is the short form, for counts."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Round:
    """One question to invited clients, and how many have answered.

    ``digest`` is the task's. ``needed`` messages make it complete; ``accepted_digest``
    names the accepted set once the round is closed.
    """

    id: str
    pipeline: str
    task: Task
    digest: str
    issued: int
    accepted: int
    needed: int
    accepted_digest: str | None

    @property
    def asks(self) -> str:
        """The message that the round's task asks for."""
        return self.task.asks

    @property
    def closed(self) -> bool:
        """Whether the accepted set is final."""
        return self.accepted_digest is not None

    @property
    def complete(self) -> bool:
        """Whether its messages may be used: enough of them, or closed."""
        return self.closed or self.accepted >= self.needed


@dataclass(frozen=True)
class _Invited:
    """What the file knows about the invitation of an envelope."""

    key: str
    about: int | None
    used: bool
    number: int
    round: str
    digest: str
    task: str
    closed: bool


class Intake:
    """The intake in the SQLite file ``path``, which is created if there is none.

    Any number of processes may use one file, each through an Intake of its own (one
    thread each). A file that is damaged, foreign, newer or cannot be written is a
    UserError, and nothing is taken in.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._db = INTAKE.connect(self.path)

    def __enter__(self) -> Intake:
        return self

    def __exit__(self, *_: object) -> None:
        # The last one to leave also removes the write-ahead log, whose order of pages
        # would tell which message came with which invitation.
        self._db.close()

    def open_round(
        self,
        round_id: str,
        *,
        pipeline: str,
        task: Task,
        needed: int,
        invitations: Sequence[Invitation],
    ) -> None:
        """Open a round with its invitations; again with the same: nothing happens.

        ``needed`` alone may change, until the round is closed. More needed than
        invited is a UserError; anything else that differs is an InternalError.
        """
        validate.at_least(1, needed=needed)
        if needed > len(invitations):
            raise UserError(
                f"round {round_id} needs {needed} messages, but invites only"
                f" {len(invitations)} clients."
            )
        digest = task.digest()
        if any((i.task, i.asks) != (digest, task.asks) for i in invitations):
            raise InternalError(f"round {round_id}: an invitation is to another task")
        with self._writing():
            known = self.round(round_id)
            if known is None:
                text = envelope.canonical(task.to_json()).decode()
                self._insert((round_id, pipeline, text, digest, needed), invitations)
                return
            if (known.pipeline, known.digest) != (pipeline, digest):
                raise InternalError(f"round {round_id} is there for another task")
            self._same_invitations(round_id, invitations)
            if not known.closed:
                change = "UPDATE rounds SET needed = ? WHERE id = ?"
                self._db.execute(change, (needed, round_id))

    def _insert(self, row: tuple[Any, ...], invitations: Sequence[Invitation]) -> None:
        number = self._db.execute(
            "INSERT INTO rounds (id, pipeline, task, digest, needed)"
            " VALUES (?, ?, ?, ?, ?)",
            row,
        ).lastrowid
        self._db.executemany(
            "INSERT INTO invitations (id, key, about, round) VALUES (?, ?, ?, ?)",
            [(i.id, i.key, i.about, number) for i in invitations],
        )

    def _same_invitations(self, round_id: str, given: Sequence[Invitation]) -> None:
        query = """SELECT id, key FROM invitations
            WHERE round = (SELECT number FROM rounds WHERE id = ?)"""
        if set(self._rows(query, round_id)) != {(i.id, i.key) for i in given}:
            raise InternalError(f"round {round_id} was opened with other invitations")

    def round(self, round_id: str) -> Round | None:
        """Return one round, or None if it was never opened."""
        with INTAKE.errors(self.path):
            rows = self._rows(f"{_ROUNDS} WHERE id = ?", round_id)
            return _round(rows[0]) if rows else None

    def rounds(self, pipeline: str | None = None) -> list[Round]:
        """Return all rounds, or those of one pipeline, as they were opened."""
        where = "pipeline = ?" if pipeline is not None else "? IS NULL"
        with INTAKE.errors(self.path):
            rows = self._rows(f"{_ROUNDS} WHERE {where} ORDER BY number", pipeline)
            return [_round(row) for row in rows]

    def take(self, data: bytes, check: Check) -> None:
        """Accept one envelope, or raise `Refused` with the reason and change nothing.

        ``check(task, about, payload)`` raises a UserError for what no honest client can
        have sent. Invitation and message change in one transaction.
        """
        sent = _read(data)
        with self._writing():
            invited = self._invited(sent)
            self._check_invitation(sent, invited)
            _check_payload(sent, invited, check)
            mark = "UPDATE invitations SET used = 1 WHERE id = ?"
            self._db.execute(mark, (sent.invitation,))
            text = envelope.canonical(sent.payload).decode()
            row = (secrets.randbits(63), invited.number, text)
            self._db.execute("INSERT INTO messages VALUES (?, ?, ?)", row)

    def _invited(self, sent: Envelope) -> _Invited:
        query = """SELECT key, about, used, number, rounds.id, digest, task,
            accepted_digest IS NOT NULL FROM invitations
            JOIN rounds ON rounds.number = round WHERE invitations.id = ?"""
        rows = self._rows(query, sent.invitation)
        if not rows:
            raise Refused(
                "unknown invitation",
                f"invitation {sent.invitation} was never issued here.",
            )
        return _Invited(*rows[0])

    def _check_invitation(self, sent: Envelope, invited: _Invited) -> None:
        if invited.used:
            raise Refused(USED, "this invitation was used before.")
        if sent.task != invited.digest:
            if self._rows("SELECT id FROM rounds WHERE digest = ?", sent.task):
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

    def close(self, round_id: str) -> str:
        """Accept nothing more; return the digest that names the accepted set.

        It is the SHA-256 of the sorted messages. Again: the same digest. A round
        without any message is a UserError.
        """
        with self._writing():
            digest = self._known(round_id).accepted_digest or self._freeze(round_id)
        with INTAKE.errors(self.path):
            # Rewritten by key: no trace of arrival is left, also if the first close
            # was killed just before this.
            self._db.execute("VACUUM")
        return digest

    def _freeze(self, round_id: str) -> str:
        texts = sorted(self._texts(round_id))
        if not texts:
            raise UserError(f"round {round_id} has no message yet; it stays open.")
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
        change = "UPDATE rounds SET accepted_digest = ? WHERE id = ?"
        self._db.execute(change, (digest, round_id))
        return digest

    def payloads(self, round_id: str) -> list[Payload]:
        """Return the accepted messages in random order."""
        self._known(round_id)
        with INTAKE.errors(self.path):
            found = [json.loads(text) for text in self._texts(round_id)]
        secrets.SystemRandom().shuffle(found)
        return found

    def _texts(self, round_id: str) -> list[str]:
        query = """SELECT payload FROM messages
            WHERE round = (SELECT number FROM rounds WHERE id = ?)"""
        return [text for (text,) in self._rows(query, round_id)]

    def _known(self, round_id: str) -> Round:
        found = self.round(round_id)
        if found is None:
            names = [each.id for each in self.rounds()]
            raise UserError(f"no round {round_id!r}.{did_you_mean(round_id, names)}")
        return found

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with INTAKE.errors(self.path):
            return self._db.execute(query, values).fetchall()

    def _writing(self) -> AbstractContextManager[None]:
        """One transaction: all of it, or nothing."""
        return INTAKE.transaction(self._db, self.path, "IMMEDIATE")


def _read(data: bytes) -> Envelope:
    try:
        return envelope.read(data)
    except UserError as error:
        raise Refused("unreadable", str(error)) from None


def _check_payload(sent: Envelope, invited: _Invited, check: Check) -> None:
    try:
        check(_task(invited.task), invited.about, sent.payload)
    except UserError as error:
        raise Refused("impossible message", str(error)) from None


@lru_cache(maxsize=8)
def _task(text: str) -> Task:
    return Task.from_json(json.loads(text))


def _round(row: Any) -> Round:
    id_, pipeline, task, digest, needed, accepted_digest, issued, accepted = row
    counts = issued, accepted, needed
    return Round(id_, pipeline, _task(task), digest, *counts, accepted_digest)
