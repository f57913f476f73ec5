"""What the server takes in: each invited client's message once, apart from who sent it.

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

from curvote import validate
from curvote.envelope import Invitation
from curvote.errors import InternalError, UserError, did_you_mean
from curvote.server import intake_base
from curvote.server.admission import (
    Admitted,
    Check,
    Checks,
    Refused,
    Sent,
    admitted,
    invitations,
    opened,
)
from curvote.server.rounds import ROUNDS, Payload, Round, digest, shuffled
from curvote.strict_json import canonical
from curvote.task import Asked


class Intake:
    """The intake in the SQLite file ``path``, which is created if there is none.

    Where ``CURVOTE_INTAKE_URL`` names a PostgreSQL database, it is there instead. Any
    number of processes may use one, each through an Intake of its own (one thread
    each). One that is damaged, foreign, newer or cannot be written is a UserError, and
    nothing is taken in.
    """

    def __init__(self, path: Path) -> None:
        self._base = intake_base.connect(Path(path))
        self._came = False

    @property
    def name(self) -> str:
        """Where it is, for messages."""
        return self._base.name

    def __enter__(self) -> Intake:
        return self

    def __exit__(self, *_: object) -> None:
        # The last one to leave also removes the write-ahead log, whose order of pages
        # would tell which message came with which invitation.
        try:
            if self._came:
                self.tidy()
        finally:
            self._base.close()

    def open_round(
        self,
        round_id: str,
        *,
        pipeline: str,
        task: Asked,
        needed: int,
        invitations: Sequence[Invitation],
        seal: str | None = None,
    ) -> None:
        """Open a round with its invitations; again with the same: nothing happens.

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
            known = self.round(round_id)
            if known is None:
                text = canonical(task.to_json()).decode()
                row = round_id, pipeline, text, task_digest, needed, seal
                self._insert(row, invitations)
                return
            if (known.pipeline, known.digest) != (pipeline, task_digest):
                raise InternalError(f"round {round_id} is there for another task")
            self._same_invitations(round_id, invitations)
            if not known.closed:
                change = "UPDATE rounds SET needed = ? WHERE id = ?"
                self._base.each(change, [(needed, round_id)])

    def _insert(self, row: tuple[Any, ...], invitations: Sequence[Invitation]) -> None:
        ((number,),) = self._rows(
            "INSERT INTO rounds (id, pipeline, task, digest, needed, seal)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
            *row,
        )
        self._base.each(
            "INSERT INTO invitations (id, key, about, record, round)"
            " VALUES (?, ?, ?, ?, ?)",
            [(i.id, i.key, i.about, i.record, number) for i in invitations],
        )

    def _same_invitations(self, round_id: str, given: Sequence[Invitation]) -> None:
        query = """SELECT id, key FROM invitations
            WHERE round = (SELECT number FROM rounds WHERE id = ?)"""
        if set(self._rows(query, round_id)) != {(i.id, i.key) for i in given}:
            raise InternalError(f"round {round_id} was opened with other invitations")

    def round(self, round_id: str) -> Round | None:
        """Return one round, or None if it was never opened."""
        with self._base.errors():
            rows = self._rows(f"{self._rounds} WHERE r.id = ?", round_id)
            return Round.of(rows[0]) if rows else None

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
            return [Round.of(row) for row in rows]

    @property
    def _rounds(self) -> str:
        return ROUNDS.format(sizes=self._base.sizes)

    def take(self, data: bytes, check: Check) -> None:
        """Accept one envelope, or raise `Refused` with the reason and change nothing.

        ``check(task, subject, payload)`` returns the message to keep, about what the
        invitation asks about; it raises a UserError for what no honest client can have
        sent. Invitation and message change in one transaction.
        """
        (refused,) = self.take_batch([data], _each(check))
        if refused:
            raise refused

    def take_batch(self, sent: Sequence[bytes], checks: Checks) -> list[Refused | None]:
        """Accept envelopes as `take` does, all in one transaction.

        ``checks`` is given the messages of one task together. Return for each envelope
        why it was refused, None where it was accepted.
        """
        self._came = True
        given = opened(sent, self._seals())
        with self._base.writing():
            self._base.lock(invitations(given))
            told = admitted(given, checks, self._rows)
            self._keep([each for each in told if isinstance(each, Admitted)])
        return [each if isinstance(each, Refused) else None for each in told]

    def _seals(self) -> list[str]:
        rows = self._rows("SELECT DISTINCT seal FROM rounds WHERE seal IS NOT NULL")
        return [seal for (seal,) in rows]

    def _keep(self, came: Sequence[Admitted]) -> None:
        """Mark invitations and keep messages, neither in the order of the other."""
        mark = "UPDATE invitations SET used = 1 WHERE id = ?"
        self._base.each(mark, sorted((each.invitation,) for each in came))
        keep = """INSERT INTO messages ("row", round, payload) VALUES (?, ?, ?)"""
        rows = [(secrets.randbits(63), each.round, each.text) for each in came]
        self._base.each(keep, sorted(rows))

    def fold(self, round_id: str, least: int) -> str | None:
        """Fold in the messages that wait, if there are ``least``; the round stays open.

        Return the digest that names all that was ever folded in: the SHA-256 of the
        sorted messages, None before the first batch. A closed round keeps its own.
        """
        validate.at_least(1, least=least)
        with self._base.writing():
            self._base.lock_round(round_id)
            known = self._known(round_id)
            if known.waiting >= least:
                self._next_batch(known)
            name = digest(self._batches(round_id))
        self.tidy()
        return name

    def close(self, round_id: str) -> str:
        """Accept nothing more; fold in what waits and return the digest of all.

        The digest is that of `fold`. Again: the same digest. A round without any
        message is a UserError.
        """
        with self._base.writing():
            self._base.lock_round(round_id)
            known = self._known(round_id)
            name = known.accepted_digest or self._freeze(known)
        self.tidy()
        return name

    def _freeze(self, known: Round) -> str:
        if known.waiting:
            self._next_batch(known)
        name = digest(self._batches(known.id))
        if name is None:
            raise UserError(f"round {known.id} has no message yet; it stays open.")
        # What is sealed to this round from now on, nobody will ever read.
        change = "UPDATE rounds SET accepted_digest = ?, seal = NULL WHERE id = ?"
        self._base.each(change, [(name, known.id)])
        return name

    def _next_batch(self, known: Round) -> None:
        change = """UPDATE messages SET batch = ? WHERE batch IS NULL
            AND round = (SELECT number FROM rounds WHERE id = ?)"""
        self._base.each(change, [(len(known.batches) + 1, known.id)])

    def tidy(self) -> None:
        """Write all rows anew, so that none tells how or when it came.

        It happens whenever a round is folded or closed, and when whoever took messages
        in leaves; a service that stays calls it now and then.
        """
        self._base.tidy()
        self._came = False

    def folded(self, round_id: str) -> str | None:
        """Return the digest of what was folded in, as `fold` does, changing nothing."""
        self._known(round_id)
        return digest(self._batches(round_id))

    def payloads(self, round_id: str, name: str) -> list[list[Payload]]:
        """Return the batches of the set with digest ``name``, each in random order.

        What came or was folded in later is left out. A set that the round never had is
        a UserError.
        """
        self._known(round_id)
        texts = self._batches(round_id)
        while texts and digest(texts) != name:
            texts.pop()
        if not texts:
            raise UserError(
                f"the intake {self.name}: round {round_id} holds no set {name[:12]},"
                " which was accepted. Put the intake's latest backup in its place."
            )
        with self._base.errors():
            return [shuffled(batch) for batch in texts]

    def _batches(self, round_id: str) -> list[list[str]]:
        """Return the messages that were folded in, batch after batch."""
        query = """SELECT batch, payload FROM messages WHERE batch IS NOT NULL
            AND round = (SELECT number FROM rounds WHERE id = ?) ORDER BY batch"""
        rows = groupby(self._rows(query, round_id), itemgetter(0))
        return [[text for _, text in batch] for _, batch in rows]

    def _known(self, round_id: str) -> Round:
        found = self.round(round_id)
        if found is None:
            names = [each.id for each in self.rounds()]
            raise UserError(f"no round {round_id!r}.{did_you_mean(round_id, names)}")
        return found

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self._base.rows(query, *values)


def _each(check: Check) -> Checks:
    """Return what checks messages one by one."""

    def one(task: Asked, sent: Sent) -> Payload | UserError:
        try:
            return check(task, *sent)
        except UserError as error:
            return error

    return lambda task, sent: [one(task, each) for each in sent]
