"""Intake of messages: each invited client's once, unlinked from its invitation.

A database holds rounds, their invitations, and the accepted messages under random keys.
No column, no order and no time links a message to the invitation it came with; one that
belongs to a public record says so itself, and comes once for each.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from curvote.base import validate
from curvote.base.errors import InternalError, UserError, did_you_mean
from curvote.intake import store
from curvote.intake.admission import (
    SELECT_ROUNDS,
    AcceptedMessage,
    BatchCheck,
    MessageCheck,
    Payload,
    RefusedEnvelope,
    Round,
    SubjectPayload,
    admit_envelopes,
    messages_digest,
    named_invitations,
    open_envelopes,
    shuffle_messages,
)
from curvote.wire.envelope import Invitation
from curvote.wire.strict_json import canonical_json
from curvote.wire.task import AnyTask


class Intake:
    """The intake in the SQLite file ``path``, which is created if there is none.

    Where ``CURVOTE_INTAKE_URL`` names a PostgreSQL database, it is there instead. Any
    number of processes may use one, each through an Intake of its own (one thread
    each). One that is damaged, foreign, newer or cannot be written is a UserError, and
    nothing is taken in.
    """

    def __init__(self, path: Path) -> None:
        self._base = store.connect_store(Path(path))
        self._has_new = False

    @property
    def name(self) -> str:
        """The intake's location, for messages."""
        return self._base.name

    def __enter__(self) -> Intake:
        return self

    def __exit__(self, *_: object) -> None:
        # The last one to leave also removes the write-ahead log, whose order of pages
        # would tell which message came with which invitation.
        try:
            if self._has_new:
                self.tidy()
        finally:
            self._base.close()

    def open_round(
        self,
        round_id: str,
        *,
        pipeline: str,
        task: AnyTask,
        needed: int,
        invitations: Sequence[Invitation],
        seal: str | None = None,
    ) -> None:
        """Open a round with its invitations; repeated calls change nothing.

        Envelopes are sealed to the public half of the private key ``seal``, if any.
        ``needed`` alone may change, until the round is closed. More needed than
        invited is a UserError; anything else that differs is an InternalError.
        """
        validate.at_least(1, needed=needed)
        if needed > len(invitations):
            raise UserError(
                f"round {round_id} needs {needed} messages, but invites only"
                f" {len(invitations)} clients."
            )
        task_digest = task.digest()
        if any((i.task, i.asks) != (task_digest, task.asks) for i in invitations):
            raise InternalError(f"round {round_id}: an invitation is to another task")
        with self._base.writing():
            existing = self.round(round_id)
            if existing is None:
                text = canonical_json(task.to_json()).decode()
                row = round_id, pipeline, text, task_digest, needed, seal
                self._insert_round(row, invitations)
                return
            if (existing.pipeline, existing.digest) != (pipeline, task_digest):
                raise InternalError(f"round {round_id} is there for another task")
            self._check_invitations(round_id, invitations)
            if not existing.closed:
                change = "UPDATE rounds SET needed = ? WHERE id = ?"
                self._base.change_many(change, [(needed, round_id)])

    def _insert_round(
        self, row: tuple[Any, ...], invitations: Sequence[Invitation]
    ) -> None:
        ((number,),) = self._rows(
            "INSERT INTO rounds (id, pipeline, task, digest, needed, seal)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
            *row,
        )
        self._base.change_many(
            "INSERT INTO invitations (id, key, about, record, round)"
            " VALUES (?, ?, ?, ?, ?)",
            [(i.id, i.key, i.about, i.record, number) for i in invitations],
        )

    def _check_invitations(
        self, round_id: str, invitations: Sequence[Invitation]
    ) -> None:
        query = """SELECT id, key FROM invitations
            WHERE round = (SELECT number FROM rounds WHERE id = ?)"""
        if set(self._rows(query, round_id)) != {(i.id, i.key) for i in invitations}:
            raise InternalError(f"round {round_id} was opened with other invitations")

    def round(self, round_id: str) -> Round | None:
        """Return one round, or None if it was never opened."""
        with self._base.errors():
            rows = self._rows(f"{self._rounds} WHERE r.id = ?", round_id)
            return Round.from_row(rows[0]) if rows else None

    def seal(self, round_id: str) -> str | None:
        """Return the private key that a round's envelopes are sealed to, if any."""
        rows = self._rows("SELECT seal FROM rounds WHERE id = ?", round_id)
        return rows[0][0] if rows else None

    def rounds(self, pipeline: str | None = None) -> list[Round]:
        """Return all rounds, or those of one pipeline, as they were opened."""
        where, values = (
            ("", []) if pipeline is None else ("WHERE pipeline = ?", [pipeline])
        )
        with self._base.errors():
            rows = self._rows(f"{self._rounds} {where} ORDER BY r.number", *values)
            return [Round.from_row(row) for row in rows]

    @property
    def _rounds(self) -> str:
        return SELECT_ROUNDS.format(sizes=self._base.sizes)

    def take(self, data: bytes, check: MessageCheck) -> None:
        """Accept one envelope, or raise `RefusedEnvelope`.

        ``check(task, subject, payload)`` returns the message to keep, about what the
        invitation asks about; it raises a UserError for what no honest client can have
        sent. Invitation and message change in one transaction.
        """
        (refused,) = self.take_batch([data], _check_singly(check))
        if refused:
            raise refused

    def take_batch(
        self, envelopes: Sequence[bytes], check: BatchCheck
    ) -> list[RefusedEnvelope | None]:
        """Accept envelopes in one transaction; return why others are refused.

        ``check`` is given the messages of one task together. Return for each envelope
        why it was refused, None where it was accepted.
        """
        self._has_new = True
        rows = self._rows("SELECT DISTINCT seal FROM rounds WHERE seal IS NOT NULL")
        opened_envelopes = open_envelopes(envelopes, [seal for (seal,) in rows])
        with self._base.writing():
            self._base.lock(named_invitations(opened_envelopes))
            outcomes = admit_envelopes(opened_envelopes, check, self._rows)
            self._store_messages(
                [
                    outcome
                    for outcome in outcomes
                    if isinstance(outcome, AcceptedMessage)
                ]
            )
        return [
            outcome if isinstance(outcome, RefusedEnvelope) else None
            for outcome in outcomes
        ]

    def _store_messages(self, messages: Sequence[AcceptedMessage]) -> None:
        """Mark invitations as used and store messages, both sorted by key."""
        mark = "UPDATE invitations SET used = 1 WHERE id = ?"
        self._base.change_many(
            mark, sorted((message.invitation,) for message in messages)
        )
        keep = """INSERT INTO messages ("row", round, payload) VALUES (?, ?, ?)"""
        rows = [
            (secrets.randbits(63), message.round, message.text) for message in messages
        ]
        self._base.change_many(keep, sorted(rows))

    def fold(self, round_id: str, least: int) -> str | None:
        """Fold in waiting messages if there are ``least``; return the digest.

        Return the digest that names all that was ever folded in: the SHA-256 of the
        sorted messages, None before the first batch. A closed round keeps its own.
        """
        validate.at_least(1, least=least)
        with self._base.writing():
            self._base.lock_round(round_id)
            current = self._require_round(round_id)
            if current.waiting >= least:
                self._fold_waiting(current)
            name = messages_digest(self._folded_batches(round_id))
        self.tidy()
        return name

    def close(self, round_id: str) -> str:
        """Close a round for ever; return the digest of all its messages.

        The digest is that of `fold`. Again: the same digest. A round without any
        message is a UserError.
        """
        with self._base.writing():
            self._base.lock_round(round_id)
            current = self._require_round(round_id)
            name = current.accepted_digest or self._close_open(current)
        self.tidy()
        return name

    def _close_open(self, current: Round) -> str:
        if current.waiting:
            self._fold_waiting(current)
        name = messages_digest(self._folded_batches(current.id))
        if name is None:
            raise UserError(f"round {current.id} has no message yet; it stays open.")
        # What is sealed to this round from now on, nobody will ever read.
        change = "UPDATE rounds SET accepted_digest = ?, seal = NULL WHERE id = ?"
        self._base.change_many(change, [(name, current.id)])
        return name

    def _fold_waiting(self, current: Round) -> None:
        change = """UPDATE messages SET batch = ? WHERE batch IS NULL
            AND round = (SELECT number FROM rounds WHERE id = ?)"""
        self._base.change_many(change, [(len(current.batches) + 1, current.id)])

    def tidy(self) -> None:
        """Rewrite all rows, so that none shows how or when it came.

        It happens whenever a round is folded or closed, and when whoever took messages
        in leaves; a service that stays calls it now and then.
        """
        self._base.tidy()
        self._has_new = False

    def folded(self, round_id: str) -> str | None:
        """Return the digest of the messages that were folded in."""
        self._require_round(round_id)
        return messages_digest(self._folded_batches(round_id))

    def payloads(self, round_id: str, name: str) -> list[list[Payload]]:
        """Return the batches of the set with digest ``name``, shuffled.

        What came or was folded in later is left out. A set that the round never had is
        a UserError.
        """
        self._require_round(round_id)
        texts = self._folded_batches(round_id)
        while texts and messages_digest(texts) != name:
            texts.pop()
        if not texts:
            raise UserError(
                f"the intake {self.name}: round {round_id} holds no set {name[:12]},"
                " which was accepted. Put the intake's latest backup in its place."
            )
        with self._base.errors():
            return [shuffle_messages(batch) for batch in texts]

    def _folded_batches(self, round_id: str) -> list[list[str]]:
        """Return the folded messages, batch after batch."""
        query = """SELECT batch, payload FROM messages WHERE batch IS NOT NULL
            AND round = (SELECT number FROM rounds WHERE id = ?) ORDER BY batch"""
        rows = groupby(self._rows(query, round_id), itemgetter(0))
        return [[text for _, text in batch] for _, batch in rows]

    def _require_round(self, round_id: str) -> Round:
        result = self.round(round_id)
        if result is None:
            names = [item.id for item in self.rounds()]
            raise UserError(f"no round {round_id!r}.{did_you_mean(round_id, names)}")
        return result

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self._base.rows(query, *values)


def _check_singly(check: MessageCheck) -> BatchCheck:
    """Return a batch check that checks messages one by one."""

    def check_one(task: AnyTask, message: SubjectPayload) -> Payload | UserError:
        try:
            return check(task, *message)
        except UserError as error:
            return error

    return lambda task, messages: [check_one(task, message) for message in messages]
