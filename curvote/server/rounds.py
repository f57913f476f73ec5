"""A round of envelopes as the intake knows it."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from curvote.chain import tasks
from curvote.sealed import public
from curvote.task import Asked

Payload = dict[str, Any]

# A round's columns, how many were invited and accepted, the sizes of its batches: as
# one text, which each database joins in its own way.
ROUNDS: Final = """SELECT id, pipeline, task, digest, needed, accepted_digest,
(SELECT count(*) FROM invitations i WHERE i.round = r.number),
(SELECT count(*) FROM messages m WHERE m.round = r.number),
(SELECT {sizes} FROM (SELECT batch, count(*) AS n FROM messages m
  WHERE m.round = r.number AND batch IS NOT NULL GROUP BY batch ORDER BY batch) AS b),
seal
FROM rounds r"""


@dataclass(frozen=True)
class Round:
    """One question to invited clients, and how many have answered.

    ``digest`` is the task's. ``needed`` messages make it complete; ``accepted_digest``
    names the accepted set once the round is closed. ``batches`` counts the messages
    that were folded in, each time. Envelopes are sealed to ``seal_to``, None: to none.
    """

    id: str
    pipeline: str
    task: Asked
    digest: str
    issued: int
    accepted: int
    needed: int
    accepted_digest: str | None
    batches: tuple[int, ...] = ()
    seal_to: str | None = None

    @classmethod
    def of(cls, row: Any) -> Round:
        """Return the round of one row of `ROUNDS`."""
        name, pipeline, task, named, needed, final, issued, accepted, sizes, seal = row
        counts = issued, accepted, needed
        batches = tuple(int(size) for size in (sizes or "").split(",") if size)
        seal_to = public(seal) if seal else None
        known = name, pipeline, read_task(task), named
        return cls(*known, *counts, final, batches, seal_to)

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

    @property
    def folded(self) -> int:
        """How many messages were folded in."""
        return sum(self.batches)

    @property
    def waiting(self) -> int:
        """How many were accepted since."""
        return self.accepted - self.folded


@lru_cache(maxsize=8)
def read_task(text: str) -> Asked:
    """Return the task that the intake's file holds as JSON."""
    return tasks.read(json.loads(text))


def digest(batches: Sequence[Sequence[str]]) -> str | None:
    """Return the SHA-256 that names a set of messages: of all of them, sorted.

    It does not depend on how they were split into batches. None names no message.
    """
    texts = sorted(text for batch in batches for text in batch)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest() if texts else None


def shuffled(texts: Sequence[str]) -> list[Payload]:
    """Return the messages in random order; what is no JSON raises as `json` does."""
    found: list[Payload] = [json.loads(text) for text in texts]
    secrets.SystemRandom().shuffle(found)
    return found
