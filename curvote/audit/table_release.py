"""A whole table of a production run as a subject of the audit: `stages.released`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit import examples
from curvote.audit.forks import in_child
from curvote.audit.leaving import Left, People, Release
from curvote.audit.tape import Tape, playing
from curvote.chain import streams
from curvote.chain.lookup import system
from curvote.chain.sharded import whole
from curvote.chain.stage import Columns, Here, Place
from curvote.chain.streams import generator
from curvote.entropy import Entropy, buckets
from curvote.errors import InternalError
from curvote.protocols.message import dealt, message_of
from curvote.protocols.roles import ROLES, Senders, split
from curvote.protocols.stages.released import bucket_count, summed

SIZES = (1, 5, 17, 70_000)
SEED = 1


class TableRelease(Release):
    """The rows that a stage of production stores, as the chain names the stage."""

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> Left:
        """Release a cohort of just these people."""
        declared, sizes = (
            system(self.task.protocol).production,
            self._sizes(len(people)),
        )
        stage = next(each for each in declared if each.message == self.message.name)
        module = import_module(stage.module)
        source = {"ingest": _Source(people, self.message.senders, sizes)}
        params = {
            "protocol": self.task.protocol,
            "message": self.message.name,
            "seed": SEED,
            "source.groups": False,
            "clients": sizes,
        }
        facts = {"task": self.task.to_json()}
        with playing(tape, world=world):
            here = Here(stage.name, (0,), (1,), source, params, facts)
            tables = whole(module, here)
        rows = tables[self.message.table]
        seen = {name: (v.dtype.str, v.shape) for name, v in rows.items()}
        return Left(rows, {"tables": sorted(tables)} | seen, tape.asked)

    def forked(self, people: People, children: int) -> list[Left]:
        """Release here, then in children."""
        first = self.leave(people, Tape())
        return [first] + [
            in_child(lambda: self.leave(people, Tape())) for _ in range(children)
        ]

    def judge(self, n: int) -> Any:
        """Return the candidates as the stage deals them out: no secret."""
        judge = dealt(self.task, n, generator(SEED, self.message.stage, "split", 0))
        return judge if judge is None else judge[np.argsort(self._dealt(n))]

    def table(self, drawn: Columns) -> Columns:
        """Return the server's table of these messages."""
        gathered: Columns = self.message.gather(self.task, drawn)
        return gathered

    def redrawn(self, people: People, entropy: Entropy) -> Columns:
        """Return the table in the clients' order, drawn shard after shard."""
        known, shards = self.known(people), self._shards(len(people))
        count = 1 if self.message.counted else bucket_count(len(people))
        made = []
        for part in shards:
            own = self.message.draw(self.task, known.of(part), entropy)
            made.append(self.table(own))
            buckets(len(part), count, entropy)
        table = {n: np.concatenate([each[n] for each in made]) for n in made[0]}
        counted = self.message.counted
        return summed(table, counted) if counted else table

    def _shards(self, n: int) -> list[NDArray[np.int64]]:
        """Return who of ``n`` clients draws in each shard."""
        rows = np.sort(self._dealt(n)) // streams.CLIENT_BLOCK
        ends = np.flatnonzero(np.diff(rows)) + 1
        return np.split(np.arange(n), ends)

    def _dealt(self, n: int) -> NDArray[np.int64]:
        """Return the rows of ``n`` senders, in the order in which roles are dealt."""
        sizes = self._sizes(n)
        senders: Senders = self.message.senders
        return senders.rows(split(SEED, 0, sum(sizes.values()), sizes))

    def _sizes(self, n: int) -> dict[str, int]:
        """Return sizes of the roles at which ``n`` clients send."""
        senders = self.message.senders
        asked = round(n / (senders.end - senders.start))
        sizes = dict.fromkeys(ROLES, 0) | {senders.roles[0]: asked}
        for more in range(-2, 3):
            found = sizes | {senders.roles[0]: asked + more}
            if senders.count(found) == n:
                return found
        raise InternalError(f"no cohort of {self.name} has {n} senders")


class _Source:
    """An ingest artifact that holds these people in the rows of the senders."""

    def __init__(self, people: People, senders: Senders, sizes: dict[str, int]) -> None:
        count = sum(sizes.values())
        mine = np.sort(senders.rows(split(SEED, 0, count, sizes)))
        curves = np.zeros((count, people.curves.shape[1]))
        labels = np.zeros(count, dtype=np.int64)
        curves[mine], labels[mine] = people.curves, people.labels
        ids = np.array([f"client {i}" for i in range(count)])
        self._columns = {"client_id": ids, "label": labels, "curve": curves}
        self.facts: dict[str, Any] = {}

    def columns(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the clients."""
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
        return {n: own[part] for n, own in self.columns(table, place, only).items()}

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
    task = examples.named(name, epsilon)
    facts = task, message_of(task), name, {"rows": SIZES}, task.budget, SIZES
    return TableRelease(*facts, ordered=task.candidates is None)
