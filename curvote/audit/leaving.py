"""What leaves, as bytes: a whole release as a subject of the audit.

And what the message draws from the words that were given, to be compared with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from curvote.audit.tape import Given, Mismatch, Tape
from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.privacy import Budget
from curvote.protocols.message import Known, knowledge
from curvote.validate import FloatArray


@dataclass(frozen=True, eq=False)
class People:
    """Clients with their own curves (n, T) and labels (n,), places of classes.

    ``judge`` (n,) is what each was asked about: the candidate that is up for a vote, or
    the number of a public record.
    """

    curves: FloatArray
    labels: FloatArray
    judge: Any = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Left:
    """What left in one release, and what the operating system was asked for.

    ``rows`` are the messages in the order in which the server has them, ``facts`` all
    else that anybody can see, ``files`` the envelopes of a command.
    """

    rows: Columns
    facts: Mapping[str, Any]
    asked: list[bytes] = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False, default_factory=dict)

    @property
    def data(self) -> bytes:
        """All noised bytes."""
        return b"".join(np.ascontiguousarray(v).tobytes() for v in self.rows.values())


@dataclass(frozen=True, eq=False)
class Release(ABC):
    """A way out of a client, from the clients' files to the bytes that a server gets.

    ``sizes`` are the numbers of clients that it is tried with; ``ordered`` says that
    the order of the rows could tell who sent which; ``runs`` is how often it may be
    asked to release where many releases say more than one. Where rows are not
    ``shuffled`` they stand in the clients' order.
    """

    shuffled: ClassVar[bool] = True

    task: Any
    message: Any
    name: str
    params: Mapping[str, Any]
    budget: Budget
    sizes: tuple[int, ...]
    ordered: bool
    runs: int = 400

    def people(self, n: int, rng: np.random.Generator) -> People:
        """Return ``n`` clients with curves from everywhere, the last class first."""
        encoding = self.task.encoding
        z = np.clip(rng.uniform(-1, 1, (n, encoding.d)), -0.999999, 0.999999)
        curves = np.arctanh(z) @ np.linalg.pinv(encoding.projection.matrix).T
        labels = np.where(np.arange(n) < n / 2, len(self.task.classes) - 1.0, 0.0)
        return People(curves, labels, self.judge(n))

    def judge(self, n: int) -> Any:
        """Return the candidate each of ``n`` clients is asked about, if any is up."""
        up = self.task.candidates
        return None if up is None else np.arange(n) % len(up.coef)

    def known(self, people: People) -> Known:
        """Return what these clients can tell."""
        return knowledge(self.task, people.curves, people.labels, people.judge)

    def table(self, drawn: Columns) -> Columns:
        """Return drawn messages in the form of ``Left.rows``."""
        return drawn

    def redrawn(self, people: People, entropy: Entropy) -> Columns:
        """Return ``Left.rows`` before they were put in order, drawn from words again.

        The order in which the words are taken is that of the release.
        """
        return self.table(self.message.draw(self.task, self.known(people), entropy))

    @abstractmethod
    def leave(self, people: People, tape: Tape, *, world: int = 0) -> Left:
        """Release, with ``tape`` in the operating system's place."""

    @abstractmethod
    def forked(self, people: People, children: int) -> list[Left]:
        """Release once, then in ``children`` of a fork, with real system entropy."""

    def neighbours(self) -> list[tuple[str, People, People]]:
        """Return pairs of clients whose records differ, in words."""
        rng = np.random.default_rng(1)
        base = self.people(1, rng)
        turned = replace(base, labels=len(self.task.classes) - 1 - base.labels)
        others = {
            "label": turned,
            "record": replace(turned, curves=self.people(1, rng).curves),
            "curve of zeros": replace(base, curves=np.zeros_like(base.curves)),
            "huge curve": replace(base, curves=1e6 * base.curves),
        }
        return [(f"another {name}", base, other) for name, other in others.items()]

    def close(self) -> None:
        """End what was started to release; here that is nothing."""
        return


def people_of(release: Release, n: int, seed: int) -> People:
    """Return ``n`` clients that a seed names."""
    return release.people(n, np.random.default_rng([seed, n]))


class Drawn(NamedTuple):
    """The table before its rows were put in order; answers before it, and after."""

    table: Columns
    before: list[bytes]
    after: list[bytes]


def drawn_from(release: Release, people: People, left: Left) -> Drawn | None:
    """Return what a run of answers, used whole and once, leads to: what left.

    None: no run does.
    """
    for start in range(len(left.asked)):
        entropy = Given(left.asked[start:])
        try:
            table = release.redrawn(people, entropy)
        except (Mismatch, UserError):
            continue
        if as_set(table) == as_set(left.rows):
            end = len(left.asked) - entropy.left
            return Drawn(table, left.asked[:start], left.asked[end:])
    return None


def as_set(table: Columns) -> bytes:
    """Return the rows in an order of their own: equal for tables of equal rows."""
    rows = matrix(table)
    return rows[np.lexsort(rows.T)].tobytes()


def matrix(table: Columns) -> FloatArray:
    """Return all columns of numbers side by side, by name, (n, k)."""
    named = [np.asarray(table[name]) for name in sorted(table)]
    columns = [
        column.astype(np.float64) for column in named if column.dtype.kind != "U"
    ]
    return np.hstack([c.reshape(len(c), -1) for c in columns])
