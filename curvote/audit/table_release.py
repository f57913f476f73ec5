"""Stored table of a production run as a subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit import examples
from curvote.audit.forks import run_in_child
from curvote.audit.leaving import People, Release, ReleaseOutcome
from curvote.audit.tape import Tape, play_tape
from curvote.chain import streams
from curvote.chain.lookup import find_system
from curvote.chain.sharded import make_all_shards
from curvote.chain.stage import Columns, Place, StageContext
from curvote.chain.streams import generator
from curvote.entropy import Entropy, random_buckets
from curvote.errors import InternalError
from curvote.protocols.message import assign_candidates, message_of
from curvote.protocols.roles import ROLES, Senders, split_roles
from curvote.protocols.stages.released import bucket_count, sum_counts

SIZES = (1, 5, 17, 70_000)
SEED = 1


class TableRelease(Release):
    """The rows that a production stage stores."""

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> ReleaseOutcome:
        """Release the table of a cohort of these people."""
        declared, sizes = (
            find_system(self.task.protocol).production,
            self._role_sizes(len(people)),
        )
        stage = next(
            candidate
            for candidate in declared
            if candidate.message == self.message.name
        )
        module = import_module(stage.module)
        source = {"ingest": _PeopleSource(people, self.message.senders, sizes)}
        params = {
            "protocol": self.task.protocol,
            "message": self.message.name,
            "seed": SEED,
            "source.groups": False,
            "clients": sizes,
        }
        facts = {"task": self.task.to_json()}
        with play_tape(tape, world=world):
            context = StageContext(stage.name, (0,), (1,), source, params, facts)
            tables = make_all_shards(module, context)
        rows = tables[self.message.table]
        column_types = {name: (v.dtype.str, v.shape) for name, v in rows.items()}
        return ReleaseOutcome(
            rows, {"tables": sorted(tables)} | column_types, tape.answers
        )

    def leave_forked(self, people: People, children: int) -> list[ReleaseOutcome]:
        """Release in this process, then in forked children."""
        first = self.leave(people, Tape())
        return [first] + [
            run_in_child(lambda: self.leave(people, Tape())) for _ in range(children)
        ]

    def candidates(self, n: int) -> Any:
        """Return the candidates as the stage assigns them."""
        judge = assign_candidates(
            self.task, n, generator(SEED, self.message.stage, "split", 0)
        )
        return judge if judge is None else judge[np.argsort(self._role_order(n))]

    def to_table(self, columns: Columns) -> Columns:
        """Return the server's table of these messages."""
        gathered: Columns = self.message.collect(self.task, columns)
        return gathered

    def redraw(self, people: People, entropy: Entropy) -> Columns:
        """Return the table in the clients' order, shard by shard."""
        data, shards = self.client_data(people), self._shard_rows(len(people))
        count = 1 if self.message.count_columns else bucket_count(len(people))
        parts = []
        for part in shards:
            columns = self.message.draw(self.task, data.subset(part), entropy)
            parts.append(self.to_table(columns))
            random_buckets(len(part), count, entropy)
        table = {
            n: np.concatenate([part_columns[n] for part_columns in parts])
            for n in parts[0]
        }
        counted = self.message.count_columns
        return sum_counts(table, counted) if counted else table

    def _shard_rows(self, n: int) -> list[NDArray[np.int64]]:
        """Return who of ``n`` clients draws in each shard."""
        rows = np.sort(self._role_order(n)) // streams.CLIENT_BLOCK
        ends = np.flatnonzero(np.diff(rows)) + 1
        return np.split(np.arange(n), ends)

    def _role_order(self, n: int) -> NDArray[np.int64]:
        """Return the senders' rows in the order of roles."""
        sizes = self._role_sizes(n)
        senders: Senders = self.message.senders
        return senders.rows(split_roles(SEED, 0, sum(sizes.values()), sizes))

    def _role_sizes(self, n: int) -> dict[str, int]:
        """Return sizes of the roles at which ``n`` clients send."""
        senders = self.message.senders
        population = round(n / (senders.end - senders.start))
        sizes = dict.fromkeys(ROLES, 0) | {senders.roles[0]: population}
        for more in range(-2, 3):
            role_sizes = sizes | {senders.roles[0]: population + more}
            if senders.count(role_sizes) == n:
                return role_sizes
        raise InternalError(f"no cohort of {self.name} has {n} senders")


class _PeopleSource:
    """An ingest artifact that holds these people as senders."""

    def __init__(self, people: People, senders: Senders, sizes: dict[str, int]) -> None:
        count = sum(sizes.values())
        rows = np.sort(senders.rows(split_roles(SEED, 0, count, sizes)))
        curves = np.zeros((count, people.curves.shape[1]))
        labels = np.zeros(count, dtype=np.int64)
        curves[rows], labels[rows] = people.curves, people.labels
        ids = np.array([f"client {i}" for i in range(count)])
        self._columns = {"client_id": ids, "label": labels, "curve": curves}
        self.metadata: dict[str, Any] = {}

    def columns(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the columns of all clients."""
        del table, place
        return {n: v for n, v in self._columns.items() if only is None or n in only}

    def count(self, table: str, place: Place) -> int:
        """Return how many shards the clients are."""
        return -(-len(self._columns["label"]) // streams.CLIENT_BLOCK)

    def shard(
        self, table: str, place: Place, number: int, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the clients of one shard."""
        start = number * streams.CLIENT_BLOCK
        part = slice(start, start + streams.CLIENT_BLOCK)
        return {
            n: shard_rows[part]
            for n, shard_rows in self.columns(table, place, only).items()
        }

    def shards(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Iterator[Columns]:
        """Yield the clients of each shard."""
        for number in range(self.count(table, place)):
            yield self.shard(table, place, number, only)

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the clients."""
        yield self._columns


def table_release(name: str, epsilon: float) -> TableRelease:
    """Return the table ``table.<protocol>.<message>`` of a small task."""
    task = examples.task_named(name, epsilon)
    facts = task, message_of(task), name, {"rows": SIZES}, task.budget, SIZES
    return TableRelease(*facts, ordered=task.candidates is None)
