"""Intake of messages: each invited client's once, unlinked from its invitation.

A database holds rounds, their invitations, and the accepted messages under random keys.
No column, no order and no time links a message to the invitation it came with; one that
belongs to a public record says so itself, and comes once for each.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from curvote.base import validate
from curvote.base.errors import InternalError, UserError, did_you_mean
from curvote.intake import admission, store
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
        url = os.environ.get(store.URL_VARIABLE)
        self._base: store.SQLiteStore | store.PostgresStore
        self._base = store.PostgresStore(url) if url else store.SQLiteStore(Path(path))
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
                ((number,),) = self._base.rows(
                    "INSERT INTO rounds (id, pipeline, task, digest, needed, seal)"
                    " VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
                    *row,
                )
                self._base.change_many(
                    "INSERT INTO invitations (id, key, about, record, round)"
                    " VALUES (?, ?, ?, ?, ?)",
                    [(i.id, i.key, i.about, i.record, number) for i in invitations],
                )
                return
            if (existing.pipeline, existing.digest) != (pipeline, task_digest):
                raise InternalError(f"round {round_id} is there for another task")
            query = """SELECT id, key FROM invitations
                WHERE round = (SELECT number FROM rounds WHERE id = ?)"""
            if set(self._base.rows(query, round_id)) != {
                (i.id, i.key) for i in invitations
            }:
                words = f"round {round_id} was opened with other invitations"
                raise InternalError(words)
            if not existing.closed:
                change = "UPDATE rounds SET needed = ? WHERE id = ?"
                self._base.change_many(change, [(needed, round_id)])

    def round(self, round_id: str) -> admission.Round | None:
        """Return one round, or None if it was never opened."""
        with self._base.errors():
            rows = self._base.rows(f"{self._rounds_query} WHERE r.id = ?", round_id)
            return admission.Round.from_row(rows[0]) if rows else None

    def seal(self, round_id: str) -> str | None:
        """Return the private key that a round's envelopes are sealed to, if any."""
        rows = self._base.rows("SELECT seal FROM rounds WHERE id = ?", round_id)
        return rows[0][0] if rows else None

    def rounds(self, pipeline: str | None = None) -> list[admission.Round]:
        """Return all rounds, or those of one pipeline, as they were opened."""
        values = [] if pipeline is None else [pipeline]
        where = "WHERE pipeline = ?" if values else ""
        with self._base.errors():
            rows = self._base.rows(
                f"{self._rounds_query} {where} ORDER BY r.number", *values
            )
            return [admission.Round.from_row(row) for row in rows]

    @property
    def _rounds_query(self) -> str:
        return admission.SELECT_ROUNDS.format(sizes=self._base.sizes)

    def take(self, data: bytes, check: admission.MessageCheck) -> None:
        """Accept one envelope, or raise `RefusedEnvelope`.

        ``check(task, subject, payload)`` returns the message to keep, about what the
        invitation asks about; it raises a UserError for what no honest client can have
        sent. Invitation and message change in one transaction.
        """

        def check_one(
            task: AnyTask, messages: Sequence[admission.SubjectPayload]
        ) -> list[admission.Payload | UserError]:
            try:
                return [check(task, *message) for message in messages]
            except UserError as error:
                return [error]

        (refused,) = self.take_batch([data], check_one)
        if refused:
            raise refused

    def take_batch(
        self, envelopes: Sequence[bytes], check: admission.BatchCheck
    ) -> list[admission.RefusedEnvelope | None]:
        """Accept envelopes in one transaction; return why others are refused.

        ``check`` is given the messages of one task together. Return for each envelope
        why it was refused, None where it was accepted.
        """
        self._has_new = True
        rows = self._base.rows(
            "SELECT DISTINCT seal FROM rounds WHERE seal IS NOT NULL"
        )
        opened_envelopes = admission.open_envelopes(
            envelopes, [seal for (seal,) in rows]
        )
        with self._base.writing():
            self._base.lock(admission.named_invitations(opened_envelopes))
            batch = admission.AdmissionBatch(opened_envelopes, check, self._base.rows)
            outcomes = batch.outcomes()
            # Invitations are marked as used and messages stored, both sorted by key.
            new = [o for o in outcomes if isinstance(o, admission.AcceptedMessage)]
            mark = "UPDATE invitations SET used = 1 WHERE id = ?"
            self._base.change_many(mark, sorted((o.invitation,) for o in new))
            keep = """INSERT INTO messages ("row", round, payload) VALUES (?, ?, ?)"""
            stored = sorted((secrets.randbits(63), o.round, o.text) for o in new)
            self._base.change_many(keep, stored)
        refusal = admission.RefusedEnvelope
        return [o if isinstance(o, refusal) else None for o in outcomes]

    def fold(self, round_id: str, least: int, *, as_look: bool = False) -> str | None:
        """Fold in waiting messages if there are ``least``; return the digest.

        Return the digest that names all that was ever folded in: the SHA-256 of the
        sorted messages, None before the first batch. A closed round keeps its own.
        Batches are numbered from 1 in a round; ``as_look`` they are in the order of all
        that were ever folded in, so that those of several rounds have one order.
        """
        validate.at_least(1, least=least)
        with self._base.writing():
            self._base.lock_round(round_id)
            current = self._require_round(round_id)
            if current.waiting >= least and not current.closed:
                self._fold_waiting(current, as_look=as_look)
            name = admission.messages_digest(self._folded_batches(round_id).values())
        self.tidy()
        return name

    def close(self, round_id: str, least: int = 1, *, as_look: bool = False) -> str:
        """Close a round for ever; return the digest of all its messages.

        Digest and ``as_look`` are those of `fold`. Again: the same digest. Fewer than
        ``least`` that wait are left out. A round without any message is a UserError.
        """
        with self._base.writing():
            self._base.lock_round(round_id)
            current = self._require_round(round_id)
            name = current.accepted_digest
            if not name:
                if current.waiting >= max(least, 1):
                    self._fold_waiting(current, as_look=as_look)
                batches = self._folded_batches(round_id).values()
                name = admission.messages_digest(batches)
                if name is None:
                    words = f"round {round_id} has no message yet; it stays open."
                    raise UserError(words)
                # What is sealed to this round from now on, nobody will ever read.
                change = (
                    "UPDATE rounds SET accepted_digest = ?, seal = NULL WHERE id = ?"
                )
                self._base.change_many(change, [(name, round_id)])
        self.tidy()
        return name

    def _fold_waiting(self, current: admission.Round, *, as_look: bool = False) -> None:
        number = len(current.batches) + 1
        if as_look:
            ((last,),) = self._base.rows("SELECT max(batch) FROM messages")
            number = (last or 0) + 1
        change = """UPDATE messages SET batch = ? WHERE batch IS NULL
            AND round = (SELECT number FROM rounds WHERE id = ?)"""
        self._base.change_many(change, [(number, current.id)])

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
        return admission.messages_digest(self._folded_batches(round_id).values())

    def payloads(self, round_id: str, name: str) -> list[list[admission.Payload]]:
        """Return the batches of the set with digest ``name``, in order, shuffled.

        What came or was folded in later is left out. A set that the round never had is
        a UserError.
        """
        batches = [
            [payload for payload, count in counts for _ in range(count)]
            for counts in self.looks(round_id, name).values()
        ]
        for messages in batches:
            secrets.SystemRandom().shuffle(messages)
        return batches

    def looks(
        self, round_id: str, name: str
    ) -> dict[int, list[tuple[admission.Payload, int]]]:
        """Return what `payloads` does by batch number: messages and their counts."""
        self._require_round(round_id)
        batches = self._folded_batches(round_id)
        while batches and admission.messages_digest(batches.values()) != name:
            batches.popitem()
        if not batches:
            raise UserError(
                f"the intake {self.name}: round {round_id} holds no set {name[:12]},"
                " which was accepted. Put the intake's latest backup in its place."
            )
        with self._base.errors():
            return {
                number: [(json.loads(text), count) for text, count in counts.items()]
                for number, counts in batches.items()
            }

    def _folded_batches(self, round_id: str) -> dict[int, dict[str, int]]:
        """Return how often each message was folded in, by batch number."""
        query = """SELECT batch, payload, count(*) FROM messages
            WHERE batch IS NOT NULL
            AND round = (SELECT number FROM rounds WHERE id = ?)
            GROUP BY batch, payload ORDER BY batch"""
        rows = groupby(self._base.rows(query, round_id), itemgetter(0))
        return {n: {text: count for _, text, count in part} for n, part in rows}

    def _require_round(self, round_id: str) -> admission.Round:
        result = self.round(round_id)
        if result is None:
            names = [item.id for item in self.rounds()]
            raise UserError(f"no round {round_id!r}.{did_you_mean(round_id, names)}")
        return result
