"""Releases as subjects: an outbox, a stored table, all bytes that leave a client.

And what the message draws from the words that were given, to be compared with it.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy, SeededEntropy, random_buckets
from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain import stage as stages
from curvote.chain.lookup import find_system
from curvote.chain.stage import CLIENT_BLOCK, Columns, Place
from curvote.checks import examples, word_checks
from curvote.checks.child import run_in_child
from curvote.ledger import account, session
from curvote.ledger.register import open_books
from curvote.messages import message as messages
from curvote.messages.message import ClientData, message_of
from curvote.messages.roles import ROLES, Senders, split_roles
from curvote.messages.stages import bucket_count, sum_counts
from curvote.wire.envelope import issue_invitations, read_envelope


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


class RedrawnTable(NamedTuple):
    """A table before ordering, with the answers used before and after."""

    table: Columns
    before: list[bytes]
    after: list[bytes]


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
    runs: int = 100

    def people(self, n: int, rng: np.random.Generator) -> People:
        """Return ``n`` clients with random curves, the last class first."""
        encoding = self.task.encoding
        z = np.clip(rng.uniform(-1, 1, (n, encoding.d)), -0.999999, 0.999999)
        curves = np.arctanh(z) @ np.linalg.pinv(encoding.projection.matrix).T
        labels = np.where(np.arange(n) < n / 2, len(self.task.classes) - 1.0, 0.0)
        return People(curves, labels, self.candidates(n))

    def seeded_people(self, n: int, seed: int) -> People:
        """Return ``n`` clients by a seed."""
        return self.people(n, np.random.default_rng([seed, n]))

    def candidates(self, n: int) -> Any:
        """Return the candidate that each of ``n`` clients is asked about."""
        up = self.task.candidates
        return None if up is None else np.arange(n) % len(up.coef)

    def client_data(self, people: People) -> ClientData:
        """Return the client data of these people."""
        return messages.client_data(
            self.task, people.curves, people.labels, people.judge
        )

    def to_table(self, columns: Columns) -> Columns:
        """Return drawn messages in the form of outcome rows."""
        return columns

    def redraw(self, people: People, entropy: Entropy) -> Columns:
        """Return the unordered rows, drawn again from words.

        The order in which the words are taken is that of the release.
        """
        data = self.client_data(people)
        return self.to_table(self.message.draw(self.task, data, entropy))

    def redraw_table(
        self, people: People, outcome: ReleaseOutcome
    ) -> RedrawnTable | None:
        """Return the table redrawn from a run of answers; None: no run does it."""
        for start in range(len(outcome.answers)):
            entropy = word_checks.ReplayedEntropy(outcome.answers[start:])
            try:
                table = self.redraw(people, entropy)
            except (word_checks.WordMismatch, UserError):
                continue
            if sort_table(table) == sort_table(outcome.rows):
                end = len(outcome.answers) - entropy.remaining
                before, after = outcome.answers[:start], outcome.answers[end:]
                return RedrawnTable(table, before, after)
        return None

    @abstractmethod
    def leave(
        self, people: People, tape: word_checks.Tape, *, world: int = 0
    ) -> ReleaseOutcome:
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


def sort_table(table: Columns) -> bytes:
    """Return the rows in canonical order."""
    rows = table_matrix(table)
    return rows[np.argsort(row_keys(rows))].tobytes()


def row_keys(rows: FloatArray) -> NDArray[np.uint64]:
    """Return a 64-bit key of each row: equal for equal rows, and hardly for others."""
    bits = np.ascontiguousarray(rows).view(np.uint64)
    odd = np.random.default_rng(0).integers(1 << 63, size=(2, bits.shape[1])) * 2 + 1
    # The low bits of short numbers are zeros, and a product's low bits with them.
    turned = bits >> np.uint64(32) | bits << np.uint64(32)
    weights = odd.astype(np.uint64)
    keys: NDArray[np.uint64] = (bits * weights[0] + turned * weights[1]).sum(axis=1)
    return keys


def table_matrix(table: Columns) -> FloatArray:
    """Return all columns of numbers side by side, by name, (n, k)."""
    columns = [np.asarray(table[name]) for name in sorted(table)]
    numbers = [c.astype(np.float64) for c in columns if c.dtype.kind != "U"]
    return np.hstack([c.reshape(len(c), -1) for c in numbers])


SIZES = (1, 5, 17, 70_000)
SEED = 1


class TableRelease(Release):
    """The rows that a production stage stores."""

    def leave(
        self, people: People, tape: word_checks.Tape, *, world: int = 0
    ) -> ReleaseOutcome:
        """Release the table of a cohort of these people."""
        declared = find_system(self.task.protocol).release_stages(with_judges=True)
        sizes = self._role_sizes(len(people))
        stage = next(s for s in declared if s.message == self.message.name)
        functions = stages.stage_functions(stage.module)
        source: Any = {"ingest": _PeopleSource(people, self.message.senders, sizes)}
        params = {
            "protocol": self.task.protocol,
            "message": self.message.name,
            "seed": SEED,
            "source.groups": False,
            "clients": sizes,
        }
        facts = {"task": self.task.to_json()}
        with word_checks.play_tape(tape, world=world):
            context = stages.StageContext(stage.name, (0,), (1,), source, params, facts)
            tables = stages.make_all_shards(functions, context)
        rows = tables[self.message.table]
        visible: dict[str, Any] = {"tables": sorted(tables)}
        visible |= {name: (v.dtype.str, v.shape) for name, v in rows.items()}
        return ReleaseOutcome(rows, visible, tape.answers)

    def leave_forked(self, people: People, children: int) -> list[ReleaseOutcome]:
        """Release in this process, then in forked children."""

        def leave() -> ReleaseOutcome:
            return self.leave(people, word_checks.Tape())

        return [leave(), *(run_in_child(leave) for _ in range(children))]

    def candidates(self, n: int) -> Any:
        """Return the candidates as the stage assigns them."""
        rng = stages.generator(SEED, self.message.stage, "split", 0)
        judge = messages.assign_candidates(self.task, n, rng)
        return judge if judge is None else judge[np.argsort(self._role_order(n))]

    def to_table(self, columns: Columns) -> Columns:
        """Return the server's table of these messages."""
        gathered: Columns = self.message.collect(self.task, columns)
        return gathered

    def redraw(self, people: People, entropy: Entropy) -> Columns:
        """Return the table in the clients' order, shard by shard."""
        data, n, parts = self.client_data(people), len(people), []
        count = 1 if self.message.count_columns else bucket_count(n)
        shard = np.sort(self._role_order(n)) // CLIENT_BLOCK
        for part in np.split(np.arange(n), np.flatnonzero(np.diff(shard)) + 1):
            columns = self.message.draw(self.task, data.subset(part), entropy)
            parts.append(self.to_table(columns))
            random_buckets(len(part), count, entropy)
        table = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        counted = self.message.count_columns
        return sum_counts(table, counted) if counted else table

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
        self._columns = {"label": labels, "curve": curves}

    def count(self, table: str, place: Place) -> int:
        """Return how many shards the clients are."""
        return -(-len(self._columns["label"]) // CLIENT_BLOCK)

    def shard(
        self, table: str, place: Place, number: int, only: Sequence[str]
    ) -> Columns:
        """Return the named columns of the clients of one shard."""
        del table, place
        part = slice(number * CLIENT_BLOCK, (number + 1) * CLIENT_BLOCK)
        return {n: v[part] for n, v in self._columns.items() if n in only}


def table_release(name: str, epsilon: float) -> TableRelease:
    """Return the table ``table.<protocol>.<message>`` of a small task."""
    task = examples.task_named(name, epsilon)
    facts = task, message_of(task), name, {"rows": SIZES}, task.budget, SIZES
    return TableRelease(*facts, ordered=not message_of(task).count_columns)


CALLS = 100
# Where there is one, ledgers lie in memory: each is written to the disk many times.
_MEMORY = Path("/dev/shm")  # noqa: S108 - folders in it are made by `tempfile`
IN_MEMORY = str(_MEMORY) if os.access(_MEMORY, os.W_OK) else None


@dataclass(frozen=True, eq=False)
class Memo:
    """A release of one client's record that claims to spend ``budget`` once.

    ``release(seed)`` returns the function that is called 100 times; ``truth`` is what
    a release without noise would be.
    """

    name: str
    params: Mapping[str, Any]
    budget: Budget
    truth: FloatArray
    release: Callable[[int], Callable[[], FloatArray]]


def check_reruns(
    release: Callable[[], NDArray[np.float64]], truth: FloatArray, budget: Budget
) -> str | None:
    """Release one record 100 times: k different outputs cost k budgets.

    ``release`` returns what leaves the client as an array of ``truth``'s shape; how
    near the mean of all outputs comes to ``truth`` is reported as evidence.
    """
    outputs = np.stack([np.asarray(release(), dtype=float) for _ in range(CALLS)])
    distinct = len(np.unique(outputs.reshape(CALLS, -1), axis=0))
    if distinct == 1:
        return None
    noise = float(np.abs(outputs[0] - truth).max())
    mean = float(np.abs(outputs.mean(axis=0) - truth).max())
    return (
        f"{distinct} different outputs in {CALLS} runs spend at least"
        f" epsilon {distinct * budget.epsilon:g}, not {budget.epsilon:g}: one output is"
        f" {noise:.3g} from the truth, their mean {mean:.3g}"
    )


# The example's curve, on the grid of 30 points.
_CURVE = np.sin(np.linspace(0, 3, 30))[None]


def outbox_memo(name: str, epsilon: float) -> Memo:
    """Return the repeated release ``outbox.<protocol>.<message>``."""
    task = examples.task_named(name, epsilon)
    judge = None if task.candidates is None else np.zeros(1, dtype=np.int64)
    data = messages.client_data(task, _CURVE, np.ones(1), judge)

    def draw_payload(entropy: SeededEntropy) -> dict[str, Any]:
        return messages.payload_at(message_of(task).draw(task, data, entropy), 0)

    def start_release(seed: int) -> Callable[[], FloatArray]:
        entropy, folder = SeededEntropy(seed), TemporaryDirectory(dir=IN_MEMORY)
        invitation = issue_invitations(task, 1)[0]

        def release_again() -> FloatArray:
            home = Path(folder.name)
            with open_books(home / "ledger.sqlite", home / "register.sqlite") as opened:
                opened[0].set_cap(account.POPULATION, task.budget)
                path = session.release_message(
                    lambda: draw_payload(entropy),
                    task=task,
                    invitation=invitation,
                    sender="me",
                    number=1,
                    books=opened,
                    outbox=home / "outbox",
                )
            return _payload_numbers(read_envelope(path.read_bytes()).payload)

        return release_again

    size = len(_payload_numbers(draw_payload(SeededEntropy(0))))
    truth = np.resize(data.z[0] if judge is None else np.zeros(1), size)
    return Memo(name, {"epsilon": epsilon}, task.budget, truth, start_release)


def _payload_numbers(payload: Mapping[str, Any]) -> FloatArray:
    parts = [np.ravel(np.asarray(payload[name], dtype=float)) for name in payload]
    return np.concatenate(parts)
