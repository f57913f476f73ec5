"""A whole table of a production run as a subject of the audit: `released.one`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from curvote.audit import examples
from curvote.audit.forks import in_child
from curvote.audit.leaving import Left, People, Release
from curvote.audit.tape import Tape, playing
from curvote.chain.lookup import system
from curvote.chain.stage import Columns, Here, Place, Stage
from curvote.chain.streams import generator
from curvote.errors import InternalError
from curvote.protocols.message import Message, dealt, messages
from curvote.protocols.roles import ROLES, split

PREFIX = "table."
SIZES = (1, 5, 17, 70_000)
SEED = 1


class TableRelease(Release):
    """The rows that a stage of production stores, as the chain names the stage."""

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> Left:
        """Release a cohort of just these people."""
        stage = stage_of(self.task.protocol, self.message)
        one = import_module(stage.module).one
        params = self._params(len(people))
        count = sum(params["clients"].values())
        source = {"ingest": _Source(people, self._mine(len(people)), count)}
        facts = {"task": self.task.to_json()}
        with playing(tape, world=world):
            tables = one(Here(stage.name, (0,), (1,), source, params, facts))
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
        return dealt(self.task, n, generator(SEED, self.message.stage, "split", 0))

    def table(self, drawn: Columns) -> Columns:
        """Return the server's table of these messages."""
        return self.message.gather(self.task, drawn)

    def _params(self, n: int) -> dict[str, Any]:
        return {
            "protocol": self.task.protocol,
            "message": self.message.name,
            "seed": SEED,
            "source.groups": False,
            "clients": self._sizes(n),
        }

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

    def _mine(self, n: int) -> Any:
        sizes = self._sizes(n)
        return self.message.senders.rows(split(SEED, 0, sum(sizes.values()), sizes))


class _Source:
    """An ingest artifact that holds these people in the rows of the senders."""

    def __init__(self, people: People, mine: Any, count: int) -> None:
        self._columns = _spread(people, mine, count)
        self.facts: dict[str, Any] = {}

    def columns(self, table: str, place: Place) -> Columns:
        """Return the clients."""
        del table, place
        return self._columns

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the clients."""
        yield self._columns


def _spread(people: People, mine: Any, count: int) -> Columns:
    curves = np.zeros((count, people.curves.shape[1]))
    labels = np.zeros(count, dtype=np.int64)
    curves[mine], labels[mine] = people.curves, (people.labels > 0).astype(np.int64)
    ids = np.array([f"client {i}" for i in range(count)])
    return {"client_id": ids, "label": labels, "curve": curves}


def stage_of(protocol: str, message: Message) -> Stage:
    """Return the stage of production in which clients send ``message``."""
    declared = system(protocol).production
    return next(stage for stage in declared if stage.message == message.name)


def released_here() -> list[str]:
    """Return ``table.<protocol>.<message>`` for all that leaves in production."""
    return [f"{PREFIX}{protocol}.{name}" for protocol, name in examples.asked()]


def table_release(name: str, epsilon: float) -> TableRelease:
    """Return the table ``table.<protocol>.<message>`` of a small task."""
    _, protocol, asks = name.split(".")
    task = examples.task(protocol, asks, epsilon)
    message = messages(protocol)[asks]
    return TableRelease(
        task,
        message,
        name,
        {"rows": SIZES},
        task.budget,
        SIZES,
        ordered=task.candidates is None,
    )
