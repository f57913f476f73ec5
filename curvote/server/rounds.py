"""Rounds of an intake, and the admission of envelopes to them."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from curvote.chain import tasks
from curvote.sealed import public_key
from curvote.task import AnyTask

Payload = dict[str, Any]

# A round's columns, how many were invited and accepted, the sizes of its batches: as
# one text, which each database joins in its own way.
SELECT_ROUNDS: Final = """SELECT id, pipeline, task, digest, needed, accepted_digest,
(SELECT count(*) FROM invitations i WHERE i.round = r.number),
(SELECT count(*) FROM messages m WHERE m.round = r.number),
(SELECT {sizes} FROM (SELECT batch, count(*) AS n FROM messages m
  WHERE m.round = r.number AND batch IS NOT NULL GROUP BY batch ORDER BY batch) AS b),
seal
FROM rounds r"""


@dataclass(frozen=True)
class Round:
    """One question to invited clients, and the number of answers.

    ``messages_digest`` is the task's. ``needed`` messages make it complete;
    ``accepted_digest`` names the accepted set once the round is closed. ``batches``
    counts the messages that were folded in, each time. Envelopes are sealed to
    ``seal_to``, None: to none.
    """

    id: str
    pipeline: str
    task: AnyTask
    digest: str
    issued: int
    accepted: int
    needed: int
    accepted_digest: str | None
    batches: tuple[int, ...] = ()
    seal_to: str | None = None

    @classmethod
    def from_row(cls, row: Any) -> Round:
        """Return the round of one row of `SELECT_ROUNDS`."""
        (
            name,
            pipeline,
            task,
            task_digest,
            needed,
            final,
            issued,
            accepted,
            sizes,
            seal,
        ) = row
        counts = issued, accepted, needed
        batches = tuple(int(size) for size in (sizes or "").split(",") if size)
        seal_to = public_key(seal) if seal else None
        identity = name, pipeline, read_task(task), task_digest
        return cls(*identity, *counts, final, batches, seal_to)

    @property
    def asks(self) -> str:
        """The name of the message that the round's task asks for."""
        return self.task.asks

    @property
    def closed(self) -> bool:
        """Whether the accepted set is final."""
        return self.accepted_digest is not None

    @property
    def complete(self) -> bool:
        """Whether the round is closed or has enough messages."""
        return self.closed or self.accepted >= self.needed

    @property
    def folded(self) -> int:
        """The number of messages that were folded in."""
        return sum(self.batches)

    @property
    def waiting(self) -> int:
        """The number of messages accepted since."""
        return self.accepted - self.folded


@lru_cache(maxsize=8)
def read_task(text: str) -> AnyTask:
    """Return the task that an intake stores as JSON."""
    return tasks.read_task(json.loads(text))


def messages_digest(batches: Sequence[Sequence[str]]) -> str | None:
    """Return the SHA-256 of a set of messages, sorted; None of none.

    It does not depend on how they were split into batches. None names no message.
    """
    texts = sorted(text for batch in batches for text in batch)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest() if texts else None


def shuffle_messages(texts: Sequence[str]) -> list[Payload]:
    """Return the parsed messages in random order."""
    messages: list[Payload] = [json.loads(text) for text in texts]
    secrets.SystemRandom().shuffle(messages)
    return messages
