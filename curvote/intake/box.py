"""Intake of messages: each invited client's once, unlinked from its invitation.

A database holds rounds, their invitations, and of the accepted messages either rows
under random keys or exact sums alone. No column, no order and no time links a message
to the invitation it came with; one that belongs to a public record says so itself, and
comes once for each.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from curvote.base import validate
from curvote.base.errors import InternalError, UserError, did_you_mean
from curvote.intake import admission, store
from curvote.learning.sums import MessageSums, SumForm
from curvote.wire.envelope import Invitation
from curvote.wire.key_tree import InvitationTree
from curvote.wire.merkle import MerkleTree
from curvote.wire.receipt import Receipt, ReceiptKey, envelope_leaf
from curvote.wire.strict_json import canonical_json
from curvote.wire.task import AnyTask


class Intake:
    """The intake in the SQLite file ``path``, which is created if there is none.

    Where ``CURVOTE_INTAKE_URL`` names a PostgreSQL database, it is there instead. Any
    number of processes may use one, each through an Intake of its own (one thread
    each). One that is damaged, foreign, newer or cannot be written is a UserError, and
    nothing is taken in.
    """

    def __init__(self, path: Path, url: str | None = None) -> None:
        url = os.environ.get(store.URL_VARIABLE) if url is None else url
        self._base: store.SQLiteStore | store.PostgresStore
        self._base = store.PostgresStore(url) if url else store.SQLiteStore(Path(path))
        self._has_new = False
        # Under it stand the sums that this process adds to: it waits for no other's.
        self._part = secrets.randbits(62)

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
        invitations: Sequence[Invitation] | InvitationTree,
        seal: str | None = None,
        keep: str | None = None,
        receipts: ReceiptKey | None = None,
    ) -> None:
        """Open a round with its invitations; repeated calls change nothing.

        Envelopes are sealed to the public half of the private key ``seal``, if any;
        ``keep`` is how messages are kept (see `Round`). Receipts are signed by the key
        ``receipts``; without one none are given. ``needed`` alone may change,
        until the round is closed. More needed than invited is a UserError; anything
        else that differs is an InternalError.
        """
        validate.at_least(1, needed=needed)
        tree = invitations if isinstance(invitations, InvitationTree) else None
        lines = [] if isinstance(invitations, InvitationTree) else invitations
        count = tree.count if tree else len(lines)
        if needed > count:
            raise UserError(
                f"round {round_id} needs {needed} messages, but invites only"
                f" {count} clients."
            )
        task_digest = task.digest()
        named = lines if tree is None else [tree]
        if any((i.task, i.asks) != (task_digest, task.asks) for i in named):
            raise InternalError(f"round {round_id}: an invitation is to another task")
        tree_text = canonical_json(tree.to_json()).decode() if tree else None
        with self._base.writing():
            existing = self.round(round_id)
            if existing is None:
                text = canonical_json(task.to_json()).decode()
                row = round_id, pipeline, text, task_digest, needed, seal
                ((number,),) = self._base.rows(
                    "INSERT INTO rounds (id, pipeline, task, digest, needed, seal,"
                    " keep, tree, receipts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                    " RETURNING number",
                    *(*row, keep, tree_text, receipts and receipts.to_text()),
                )
                self._base.change_many(
                    "INSERT INTO invitations (id, key, about, record, round)"
                    " VALUES (?, ?, ?, ?, ?)",
                    [(i.id, i.key, i.about, i.record, number) for i in lines],
                )
                return
            if (existing.pipeline, existing.digest) != (pipeline, task_digest):
                raise InternalError(f"round {round_id} is there for another task")
            query = """SELECT id, key FROM invitations
                WHERE round = (SELECT number FROM rounds WHERE id = ?)"""
            ((tree_there,),) = self._base.rows(
                "SELECT tree FROM rounds WHERE id = ?", round_id
            )
            same = set(self._base.rows(query, round_id)) == {
                (i.id, i.key) for i in lines
            }
            if not same or tree_there != tree_text:
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
        self,
        envelopes: Sequence[bytes],
        check: admission.BatchCheck,
        salts: Sequence[bytes] | None = None,
    ) -> list[admission.RefusedEnvelope | None]:
        """Accept envelopes in one transaction; return why others are refused.

        ``check`` is given the messages of one task together. Return for each envelope
        why it was refused, None where it was accepted. ``salts`` are those of their
        leaves; without them nobody gets a receipt, and they are drawn.
        """
        self._has_new = True
        rows = self._base.rows(
            "SELECT DISTINCT seal FROM rounds WHERE seal IS NOT NULL"
        )
        opened_envelopes = admission.open_envelopes(
            envelopes, [seal for (seal,) in rows]
        )
        with self._base.writing():
            batch = admission.AdmissionBatch(opened_envelopes, check, self._base)
            outcomes = batch.outcomes()
            # Invitations are marked as used and messages stored, both sorted by key.
            new = [o for o in outcomes if isinstance(o, admission.AcceptedMessage)]
            salts = salts or [secrets.token_bytes(32) for _ in envelopes]
            mark = "UPDATE invitations SET used = 1 WHERE id = ?"
            used = sorted((o.invitation,) for o in new if o.place is None)
            self._base.change_many(mark, used)
            by_round: dict[int, list[admission.AcceptedMessage]] = {}
            for accepted in new:
                by_round.setdefault(accepted.round, []).append(accepted)
            for number, messages in sorted(by_round.items()):
                places = [m.place for m in messages if m.place is not None]
                self._mark_places(number, places)
                self._keep(number, [m.payload for m in messages])
            triples = zip(outcomes, salts, envelopes, strict=True)
            self._keep_leaves(
                (outcome.round, envelope_leaf(salt, data))
                for outcome, salt, data in triples
                if isinstance(outcome, admission.AcceptedMessage)
            )
        refusal = admission.RefusedEnvelope
        return [o if isinstance(o, refusal) else None for o in outcomes]

    def _keep_leaves(self, leaves: Iterable[tuple[int, bytes]]) -> None:
        """Keep leaves of rounds that give receipts, sorted: no order of arrival."""
        query = "SELECT number FROM rounds WHERE receipts IS NOT NULL"
        giving = {number for (number,) in self._base.rows(query)}
        rows = sorted((leaf, number) for number, leaf in leaves if number in giving)
        keep = "INSERT INTO leaves (leaf, round) VALUES (?, ?)"
        self._base.change_many(keep, rows)

    def receipts(
        self, envelopes: Sequence[bytes], salts: Sequence[bytes]
    ) -> list[dict[str, Any] | None]:
        """Return the receipts of envelopes that came with these salts.

        None: it was not accepted, with another salt, or in a round that gives none.
        """
        leaves = [envelope_leaf(*pair) for pair in zip(salts, envelopes, strict=True)]
        marks = ", ".join("?" * len(leaves))
        query = f"SELECT leaf, round FROM leaves WHERE leaf IN ({marks})"  # noqa: S608
        numbers = {bytes(leaf): n for leaf, n in self._base.rows(query, *leaves)}
        query = "SELECT task, digest, receipts FROM rounds WHERE number = ?"
        rounds = {n: self._base.rows(query, n)[0] for n in {*numbers.values()}}
        keys = {n: ReceiptKey.from_text(key) for n, (*_, key) in rounds.items()}
        receipts: list[dict[str, Any] | None] = []
        for leaf, salt, data in zip(leaves, salts, envelopes, strict=True):
            number = numbers.get(leaf)
            if number is None:
                receipts.append(None)
                continue
            task, digest, _ = rounds[number]
            epsilon = float(admission.read_task(task).epsilon)
            sha256 = hashlib.sha256(data).hexdigest()
            receipt = Receipt(digest, epsilon, salt.hex(), sha256)
            receipts.append(keys[number].sign(receipt))
        return receipts

    def leaves(self, round_id: str) -> list[bytes]:
        """Return the leaves of all envelopes of a round that were folded in.

        UserError: there are not as many as messages, so one was dropped or doubled.
        """
        round_ = self.require_round(round_id)
        query = """SELECT leaf FROM leaves WHERE batch IS NOT NULL
            AND round = (SELECT number FROM rounds WHERE id = ?) ORDER BY leaf"""
        leaves = [bytes(leaf) for (leaf,) in self._base.rows(query, round_id)]
        if round_.receipts and len(leaves) != round_.folded:
            raise UserError(
                f"the intake {self.name}: round {round_id} counts {round_.folded}"
                f" messages of {len(leaves)} envelopes. Put its latest backup back."
            )
        return leaves

    def round_of_leaf(self, leaf: bytes) -> admission.Round | None:
        """Return the round in which the envelope of a leaf was folded in, if any."""
        query = """SELECT r.id FROM leaves l JOIN rounds r ON r.number = l.round
            WHERE l.leaf = ? AND l.batch IS NOT NULL"""
        rows = self._base.rows(query, leaf)
        return self.require_round(rows[0][0]) if rows else None

    def roots(self, pipeline: str) -> list[tuple[str, str, int]]:
        """Return task digest, Merkle root (64 hex digits) and count of each round.

        They are about what was folded in, of the rounds that give receipts, as they
        were opened. UserError as of `leaves`.
        """
        trees = [
            (round_.digest, MerkleTree(self.leaves(round_.id)))
            for round_ in self.rounds(pipeline)
            if round_.receipts and round_.folded
        ]
        return [(task, tree.root.hex(), len(tree.leaves)) for task, tree in trees]

    def _mark_places(self, number: int, places: Iterable[int]) -> None:
        """Mark places of a round's tree as used, each for the first time."""
        places = [*places]
        marks = admission.read_marks(self._base, number, places)
        for place in places:
            bits, bit = marks[place // admission.BLOCK], 1 << place % 8
            if bits[place % admission.BLOCK // 8] & bit:
                raise InternalError(f"place {place} of a tree was used before")
            bits[place % admission.BLOCK // 8] |= bit
        self._write_marks(number, marks)

    def _write_marks(self, number: int, marks: Mapping[int, bytes | bytearray]) -> None:
        change = """INSERT INTO marks (round, block, bits) VALUES (?, ?, ?)
            ON CONFLICT (round, block) DO UPDATE SET bits = excluded.bits"""
        rows = [(number, block, bytes(bits)) for block, bits in marks.items()]
        self._base.change_many(change, rows)

    def _keep(self, number: int, payloads: Sequence[admission.Payload]) -> None:
        """Keep messages of a round, as rows or added to the sums of this process."""
        ((keep,),) = self._base.rows("SELECT keep FROM rounds WHERE number = ?", number)
        form = SumForm.from_text(keep)
        if form is None:
            rows = sorted(
                (secrets.randbits(63), number, canonical_json(payload).decode())
                for payload in payloads
            )
            keep_rows = """INSERT INTO messages ("row", round, payload)
                VALUES (?, ?, ?)"""
            self._base.change_many(keep_rows, rows)
            return
        sums = MessageSums(form)
        sums.add(payloads)
        self._add_sums(number, sums)

    def _add_sums(self, number: int, sums: MessageSums) -> None:
        part = self._part ^ number
        query = "SELECT state FROM sums WHERE part = ? AND batch IS NULL"
        for (text,) in self._base.rows(query, part):
            sums.merge(MessageSums.from_text(sums.form, text))
        change = """INSERT INTO sums (part, round, n, state) VALUES (?, ?, ?, ?)
            ON CONFLICT (part) DO UPDATE SET n = excluded.n, state = excluded.state"""
        self._base.change_many(change, [(part, number, sums.n, sums.to_text())])

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
            current = self.require_round(round_id)
            if current.waiting >= least and not current.closed:
                self._fold_waiting(current, as_look=as_look)
            name = _digest_of(self._folded_batches(round_id))
        self.tidy()
        return name

    def close(self, round_id: str, least: int = 1, *, as_look: bool = False) -> str:
        """Close a round for ever; return the digest of all its messages.

        Digest and ``as_look`` are those of `fold`. Again: the same digest. Fewer than
        ``least`` that wait are left out. A round without any message is a UserError.
        """
        with self._base.writing():
            self._base.lock_round(round_id)
            current = self.require_round(round_id)
            name = current.accepted_digest
            if not name:
                if current.waiting >= max(least, 1):
                    self._fold_waiting(current, as_look=as_look)
                name = _digest_of(self._folded_batches(round_id))
                if name is None:
                    words = f"round {round_id} has no message yet; it stays open."
                    raise UserError(words)
                # What is sealed to this round from now on, nobody will ever read.
                # Nor is a receipt signed any more.
                query = "SELECT receipts FROM rounds WHERE id = ?"
                ((text,),) = self._base.rows(query, round_id)
                unsigned = text and replace(ReceiptKey.from_text(text), private=None)
                change = """UPDATE rounds SET accepted_digest = ?, seal = NULL,
                    receipts = ? WHERE id = ?"""
                values = name, unsigned and unsigned.to_text(), round_id
                self._base.change_many(change, [values])
        self.tidy()
        return name

    def _fold_waiting(self, current: admission.Round, *, as_look: bool = False) -> None:
        number = len(current.batches) + 1
        if as_look:
            ((last,),) = self._base.rows(
                "SELECT max(batch) FROM (SELECT batch FROM messages"
                " UNION ALL SELECT batch FROM sums) AS every"
            )
            number = (last or 0) + 1
        for table in ("messages", "leaves"):
            change = f"""UPDATE {table} SET batch = ? WHERE batch IS NULL
                AND round = (SELECT number FROM rounds WHERE id = ?)"""  # noqa: S608
            self._base.change_many(change, [(number, current.id)])
        query = "SELECT number FROM rounds WHERE id = ?"
        ((round_number,),) = self._base.rows(query, current.id)
        self._merge_waiting(round_number, current.sum_form, number)

    def _merge_waiting(
        self, number: int, form: SumForm | None, batch: int | None = None
    ) -> None:
        """Merge the sums that wait in a round into one row, under a new key."""
        query = "SELECT state FROM sums WHERE round = ? AND batch IS NULL"
        rows = self._base.rows(query, number)
        if form is None or not rows:
            return
        total = MessageSums.of_all(MessageSums.from_text(form, row[0]) for row in rows)
        merged = "DELETE FROM sums WHERE round = ? AND batch IS NULL"
        self._base.change_many(merged, [(number,)])
        row = secrets.randbits(62), number, batch, total.n, total.to_text()
        keep = "INSERT INTO sums (part, round, batch, n, state) VALUES (?, ?, ?, ?, ?)"
        self._base.change_many(keep, [row])

    def merge(self, path: Path, pipeline: str | None = None) -> dict[str, int]:
        """Add what the intake in another file took in; return how many, by round.

        Its rounds, those of one ``pipeline`` if it is named, are those that are here,
        copied when they opened. Each is closed there for ever, then added here in one
        transaction; a second time adds nothing, nor does one that was closed before the
        copy. UserError, and nothing of it is added: a round is another one here, or an
        invitation was counted in both.
        """
        added = {}
        with Intake(path, url="") as source:
            for theirs in source.rounds(pipeline):
                round_, asked_there = (
                    self.round(theirs.id),
                    (theirs.digest, theirs.keep),
                )
                if round_ is None or (round_.digest, round_.keep) != asked_there:
                    raise UserError(
                        f"{path}: its round {theirs.id} is not one that is open here."
                        " A second intake begins as a copy of this one."
                    )
                if not theirs.accepted:
                    continue
                if theirs.closed and theirs.accepted_digest == round_.accepted_digest:
                    added[theirs.id] = 0
                    continue
                for closing in (False, True):  # what is refused stays open there
                    if closing:
                        source.close(theirs.id)
                    content = _RoundContent.of(source._base, theirs.id)
                    with self._base.writing():
                        new = self._refuse_counted_twice(round_, content, path)
                        if closing and new:
                            self._add_content(theirs.id, content, source)
                added[theirs.id] = theirs.accepted if new else 0
        self.tidy()
        return added

    def _refuse_counted_twice(
        self, round_: admission.Round, content: _RoundContent, path: Path
    ) -> bool:
        """Return whether another intake's round is to be added; refuse a used one."""
        self._base.lock(content.used)
        ((number, merged),) = self._base.rows(
            "SELECT number, merged FROM rounds WHERE id = ?", round_.id
        )
        if content.digest in (merged or "").split():
            return False
        if round_.closed:
            raise UserError(f"round {round_.id} is closed: nothing can be added to it.")
        query = "SELECT id, used, record FROM invitations WHERE round = ?"
        rows = self._base.rows(query, number)
        if any(record is not None for *_, record in rows):
            raise UserError(
                f"round {round_.id} is about public records, of which each has one"
                " message: one intake must have them all."
            )
        invited = {name: used for name, used, _ in rows}
        unknown = [name for name in content.used if name not in invited]
        twice = [name for name in content.used if invited.get(name)]
        marks = admission.read_marks(
            self._base, number, [b * admission.BLOCK for b in content.marks]
        )
        twice += [
            f"place {block * admission.BLOCK + k}"
            for block, bits in content.marks.items()
            for k in range(8 * len(bits))
            if bits[k // 8] & marks[block][k // 8] & 1 << k % 8
        ]
        query = "SELECT leaf FROM leaves WHERE round = ?"
        leaves = {bytes(leaf) for (leaf,) in self._base.rows(query, number)}
        same = [leaf.hex() for leaf in content.leaves if leaf in leaves]
        for kind, names, words in (
            ("invitation", unknown, "was never issued here"),
            ("invitation", twice, "was counted here, too"),
            ("leaf", same, "was counted here, too"),
        ):
            if names:
                raise UserError(
                    f"{path}, round {round_.id}: {kind} {', '.join(names[:3])}"
                    f"{f' and {len(names) - 3} more' * (len(names) > 3)} {words}."
                    " Nothing was added."
                )
        return True

    def _add_content(
        self, round_id: str, content: _RoundContent, source: Intake
    ) -> None:
        ((number, merged),) = self._base.rows(
            "SELECT number, merged FROM rounds WHERE id = ?", round_id
        )
        mark = "UPDATE invitations SET used = 1 WHERE id = ?"
        self._base.change_many(mark, [(name,) for name in content.used])
        places = [b * admission.BLOCK for b in content.marks]
        marks = admission.read_marks(self._base, number, places)
        for block, bits in content.marks.items():
            marks[block] = bytearray(
                a | b for a, b in zip(marks[block], bits, strict=True)
            )
        self._write_marks(number, marks)
        total = MessageSums.of_all(source._folded_batches(round_id).values())
        if SumForm.from_text(content.keep) is None:
            rows = ([word] * count for word, count in total.payloads())
            self._keep(number, [word for part in rows for word in part])
        else:
            self._add_sums(number, total)
        self._keep_leaves((number, leaf) for leaf in source.leaves(round_id))
        change = "UPDATE rounds SET merged = ? WHERE id = ?"
        names = f"{merged or ''} {content.digest}".strip()
        self._base.change_many(change, [(names, round_id)])

    def tidy(self) -> None:
        """Rewrite all rows, so that none shows how or when it came.

        It happens whenever a round is folded or closed, and when whoever took messages
        in leaves; a service that stays calls it now and then.
        """

        def merge() -> None:
            query = "SELECT number, keep FROM rounds WHERE accepted_digest IS NULL"
            for number, keep in self._base.rows(query):
                self._merge_waiting(number, SumForm.from_text(keep))

        self._base.tidy(merge)
        self._has_new = False

    def folded(self, round_id: str) -> str | None:
        """Return the digest of the messages that were folded in."""
        self.require_round(round_id)
        return _digest_of(self._folded_batches(round_id))

    def batches(self, round_id: str, name: str) -> dict[int, MessageSums]:
        """Return the batches of the set with digest ``name``, by number, in order.

        Of rows each is the count of each message. What came or was folded in later is
        left out. A set that the round never had is a UserError.
        """
        self.require_round(round_id)
        batches = self._folded_batches(round_id)
        while batches and _digest_of(batches) != name:
            batches.popitem()
        if not batches:
            raise UserError(
                f"the intake {self.name}: round {round_id} holds no set {name[:12]},"
                " which was accepted. Put the intake's latest backup in its place."
            )
        return batches

    def _folded_batches(self, round_id: str) -> dict[int, MessageSums]:
        ((number, keep),) = self._base.rows(
            "SELECT number, keep FROM rounds WHERE id = ?", round_id
        )
        form = SumForm.from_text(keep)
        if form is not None:
            query = (
                "SELECT batch, state FROM sums WHERE round = ? AND batch IS NOT NULL"
            )
            rows = sorted(self._base.rows(query, number))
            return {n: MessageSums.from_text(form, text) for n, text in rows}
        query = """SELECT batch, payload, count(*) FROM messages
            WHERE batch IS NOT NULL AND round = ?
            GROUP BY batch, payload ORDER BY batch"""
        parts = groupby(self._base.rows(query, number), itemgetter(0))
        return {
            n: MessageSums(words={text: [count] for _, text, count in part})
            for n, part in parts
        }

    def require_round(self, round_id: str) -> admission.Round:
        """Return one round; one that was never opened is a UserError."""
        result = self.round(round_id)
        if result is None:
            names = [item.id for item in self.rounds()]
            raise UserError(f"no round {round_id!r}.{did_you_mean(round_id, names)}")
        return result


@dataclass(frozen=True)
class _RoundContent:
    """What a round of an intake has counted: invitations, places of a tree, messages.

    ``digest`` names the invitations: of each there is one message, and one leaf where
    the round gives receipts.
    """

    used: list[str]
    marks: dict[int, bytes]
    keep: str | None
    digest: str
    leaves: list[bytes]

    @classmethod
    def of(
        cls, base: store.SQLiteStore | store.PostgresStore, round_id: str
    ) -> _RoundContent:
        """Return what a round has counted."""
        query = "SELECT number, keep FROM rounds WHERE id = ?"
        ((number, keep),) = base.rows(query, round_id)
        names = "SELECT id FROM invitations WHERE round = ? AND used = 1 ORDER BY id"
        used = [name for (name,) in base.rows(names, number)]
        blocks = "SELECT block, bits FROM marks WHERE round = ? ORDER BY block"
        marks = {block: bytes(bits) for block, bits in base.rows(blocks, number)}
        marks = {block: bits for block, bits in marks.items() if any(bits)}
        text = canonical_json([used, {str(b): m.hex() for b, m in marks.items()}])
        query = "SELECT leaf FROM leaves WHERE round = ? ORDER BY leaf"
        leaves = [bytes(leaf) for (leaf,) in base.rows(query, number)]
        return cls(used, marks, keep, hashlib.sha256(text).hexdigest(), leaves)


def _digest_of(batches: Mapping[int, MessageSums]) -> str | None:
    """Return the digest of all messages of batches; None of none."""
    return MessageSums.of_all(batches.values()).digest() if batches else None
