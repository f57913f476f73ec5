"""What the server takes in: each invited client's message once, apart from who sent it.

One SQLite file holds rounds, their invitations, and the accepted messages under random
keys. No column, no order and no time links a message to the invitation it came with;
one that belongs to a public record says so itself, and comes once for each.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from curvote import validate
from curvote.envelope import Invitation
from curvote.errors import InternalError, UserError, did_you_mean
from curvote.server.admission import Check, Refused, admitted
from curvote.server.intake_file import INTAKE
from curvote.server.rounds import ROUNDS, Payload, Round, digest, shuffled
from curvote.strict_json import canonical
from curvote.task import Asked


class Intake:
    """The intake in the SQLite file ``path``, which is created if there is none.

    Any number of processes may use one file, each through an Intake of its own (one
    thread each). A file that is damaged, foreign, newer or cannot be written is a
    UserError, and nothing is taken in.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._db = INTAKE.connect(self.path)
        self._came = False

    def __enter__(self) -> Intake:
        return self

    def __exit__(self, *_: object) -> None:
        # The last one to leave also removes the write-ahead log, whose order of pages
        # would tell which message came with which invitation.
        try:
            if self._came:
                self._forget_arrivals()
        finally:
            self._db.close()

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
        with self._writing():
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
                self._db.execute(change, (needed, round_id))

    def _insert(self, row: tuple[Any, ...], invitations: Sequence[Invitation]) -> None:
        number = self._db.execute(
            "INSERT INTO rounds (id, pipeline, task, digest, needed, seal)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            row,
        ).lastrowid
        self._db.executemany(
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
        with INTAKE.errors(self.path):
            rows = self._rows(f"{ROUNDS} WHERE id = ?", round_id)
            return Round.of(rows[0]) if rows else None

    def seal(self, round_id: str) -> str | None:
        """Return the private key that a round's envelopes are sealed to, if any."""
        rows = self._rows("SELECT seal FROM rounds WHERE id = ?", round_id)
        return rows[0][0] if rows else None

    def rounds(self, pipeline: str | None = None) -> list[Round]:
        """Return all rounds, or those of one pipeline, as they were opened."""
        where = "pipeline = ?" if pipeline is not None else "? IS NULL"
        with INTAKE.errors(self.path):
            rows = self._rows(f"{ROUNDS} WHERE {where} ORDER BY number", pipeline)
            return [Round.of(row) for row in rows]

    def take(self, data: bytes, check: Check) -> None:
        """Accept one envelope, or raise `Refused` with the reason and change nothing.

        ``check(task, subject, payload)`` returns the message to keep, about what the
        invitation asks about; it raises a UserError for what no honest client can have
        sent. Invitation and message change in one transaction.
        """
        (refused,) = self.take_batch([data], check)
        if refused:
            raise refused

    def take_batch(self, sent: Sequence[bytes], check: Check) -> list[Refused | None]:
        """Accept envelopes as `take` does, all in one transaction.

        Return for each why it was refused, None where it was accepted.
        """
        self._came = True
        with self._writing():
            return [self._take(data, check) for data in sent]

    def _take(self, data: bytes, check: Check) -> Refused | None:
        try:
            came = admitted(data, check, self._rows)
        except Refused as refused:
            return refused
        mark = "UPDATE invitations SET used = 1 WHERE id = ?"
        self._db.execute(mark, (came.invitation,))
        keep = "INSERT INTO messages (row, round, payload) VALUES (?, ?, ?)"
        self._db.execute(keep, (secrets.randbits(63), came.round, came.text))
        return None

    def fold(self, round_id: str, least: int) -> str | None:
        """Fold in the messages that wait, if there are ``least``; the round stays open.

        Return the digest that names all that was ever folded in: the SHA-256 of the
        sorted messages, None before the first batch. A closed round keeps its own.
        """
        validate.at_least(1, least=least)
        with self._writing():
            known = self._known(round_id)
            if known.waiting >= least:
                self._next_batch(known)
            name = digest(self._batches(round_id))
        self._forget_arrivals()
        return name

    def close(self, round_id: str) -> str:
        """Accept nothing more; fold in what waits and return the digest of all.

        The digest is that of `fold`. Again: the same digest. A round without any
        message is a UserError.
        """
        with self._writing():
            known = self._known(round_id)
            name = known.accepted_digest or self._freeze(known)
        self._forget_arrivals()
        return name

    def _freeze(self, known: Round) -> str:
        if known.waiting:
            self._next_batch(known)
        name = digest(self._batches(known.id))
        if name is None:
            raise UserError(f"round {known.id} has no message yet; it stays open.")
        # What is sealed to this round from now on, nobody will ever read.
        change = "UPDATE rounds SET accepted_digest = ?, seal = NULL WHERE id = ?"
        self._db.execute(change, (name, known.id))
        return name

    def _next_batch(self, known: Round) -> None:
        change = """UPDATE messages SET batch = ? WHERE batch IS NULL
            AND round = (SELECT number FROM rounds WHERE id = ?)"""
        self._db.execute(change, (len(known.batches) + 1, known.id))

    def _forget_arrivals(self) -> None:
        """Rewrite the file by key: no trace of arrival is left.

        SQLite puts a row where there is room on its page, so that places follow arrival
        until then. Whether or not anything changed: the last one may have been killed
        before this.
        """
        with INTAKE.errors(self.path):
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

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
                f"the intake {self.path}: round {round_id} holds no set {name[:12]},"
                " which was accepted. Put the intake's latest backup in its place."
            )
        with INTAKE.errors(self.path):
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
        with INTAKE.errors(self.path):
            return self._db.execute(query, values).fetchall()

    def _writing(self) -> AbstractContextManager[None]:
        """One transaction: all of it, or nothing."""
        return INTAKE.transaction(self._db, self.path, "IMMEDIATE")
