"""Releases as subjects: an outbox, a stored table, all bytes that leave a client.

And what the message draws from the words that were given, to be compared with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from curvote.audit.tape import ReplayedEntropy, Tape, WordMismatch
from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.privacy import Budget
from curvote.protocols.message import ClientData, client_data
from curvote.validate import FloatArray


@dataclass(frozen=True, eq=False)
class People:
    """Clients with their own curves (n, T) and labels (n,).

    ``judge`` (n,) is what each was asked about: the candidate that is up for a vote, or
    the number of a public record.
    """

    curves: FloatArray
    labels: FloatArray
    judge: Any = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ReleaseOutcome:
    """The outcome of one release, and the operating system's answers.

    ``rows`` are the messages in the order in which the server has them, ``facts`` all
    else that anybody can see, ``files`` the envelopes of a command.
    """

    rows: Columns
    facts: Mapping[str, Any]
    answers: list[bytes] = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False, default_factory=dict)

    @property
    def noised_bytes(self) -> bytes:
        """All noised bytes."""
        return b"".join(np.ascontiguousarray(v).tobytes() for v in self.rows.values())


@dataclass(frozen=True, eq=False)
class Release(ABC):
    """A way from clients' files to the bytes that a server gets.

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
        """Return ``n`` clients with random curves, the last class first."""
        encoding = self.task.encoding
        z = np.clip(rng.uniform(-1, 1, (n, encoding.d)), -0.999999, 0.999999)
        curves = np.arctanh(z) @ np.linalg.pinv(encoding.projection.matrix).T
        labels = np.where(np.arange(n) < n / 2, len(self.task.classes) - 1.0, 0.0)
        return People(curves, labels, self.candidates(n))

    def candidates(self, n: int) -> Any:
        """Return the candidate that each of ``n`` clients is asked about."""
        up = self.task.candidates
        return None if up is None else np.arange(n) % len(up.coef)

    def client_data(self, people: People) -> ClientData:
        """Return the client data of these people."""
        return client_data(self.task, people.curves, people.labels, people.judge)

    def to_table(self, columns: Columns) -> Columns:
        """Return drawn messages in the form of outcome rows."""
        return columns

    def redraw(self, people: People, entropy: Entropy) -> Columns:
        """Return the unordered rows, drawn again from words.

        The order in which the words are taken is that of the release.
        """
        return self.to_table(
            self.message.draw(self.task, self.client_data(people), entropy)
        )

    @abstractmethod
    def leave(self, people: People, tape: Tape, *, world: int = 0) -> ReleaseOutcome:
        """Release once, with ``tape`` in the operating system's place."""

    @abstractmethod
    def leave_forked(self, people: People, children: int) -> list[ReleaseOutcome]:
        """Release once, then in ``children`` of a fork, with real entropy."""

    def neighbours(self) -> list[tuple[str, People, People]]:
        """Return named pairs of clients whose records differ."""
        rng = np.random.default_rng(1)
        base = self.people(1, rng)
        turned = replace(base, labels=len(self.task.classes) - 1 - base.labels)
        changes = {
            "label": turned,
            "record": replace(turned, curves=self.people(1, rng).curves),
            "curve of zeros": replace(base, curves=np.zeros_like(base.curves)),
            "huge curve": replace(base, curves=1e6 * base.curves),
        }
        return [(f"another {name}", base, other) for name, other in changes.items()]

    def close(self) -> None:
        """Release the resources; by default there are none."""
        return


def seeded_people(release: Release, n: int, seed: int) -> People:
    """Return ``n`` clients by a seed."""
    return release.people(n, np.random.default_rng([seed, n]))


class RedrawnTable(NamedTuple):
    """A table before ordering, with the answers used before and after."""

    table: Columns
    before: list[bytes]
    after: list[bytes]


def redraw_table(
    release: Release, people: People, outcome: ReleaseOutcome
) -> RedrawnTable | None:
    """Return the table redrawn from a run of answers, None for none.

    None: no run does.
    """
    for start in range(len(outcome.answers)):
        entropy = ReplayedEntropy(outcome.answers[start:])
        try:
            table = release.redraw(people, entropy)
        except (WordMismatch, UserError):
            continue
        if sort_table(table) == sort_table(outcome.rows):
            end = len(outcome.answers) - entropy.remaining
            return RedrawnTable(table, outcome.answers[:start], outcome.answers[end:])
    return None


def sort_table(table: Columns) -> bytes:
    """Return the rows in canonical order."""
    rows = table_matrix(table)
    return rows[np.lexsort(rows.T)].tobytes()


def table_matrix(table: Columns) -> FloatArray:
    """Return all columns of numbers side by side, by name, (n, k)."""
    named = [np.asarray(table[name]) for name in sorted(table)]
    columns = [
        column.astype(np.float64) for column in named if column.dtype.kind != "U"
    ]
    return np.hstack([c.reshape(len(c), -1) for c in columns])
