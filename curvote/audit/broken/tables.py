"""Broken twins of a whole table: words that somebody may know, telling orders."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.leaving import People, Release, ReleaseOutcome
from curvote.audit.table_release import TableRelease, table_release
from curvote.audit.tape import Tape, play_tape
from curvote.entropy import (
    Entropy,
    SeededEntropy,
    SystemEntropy,
    Words,
    random_permutation,
)

Source = Callable[[Release, People], Entropy]
Order = Callable[[People], NDArray[np.int64]]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableTwin(TableRelease):
    """A table with words from ``words``, and its order from ``arranged``."""

    words: Source = lambda release, people: SystemEntropy()
    arranged: Order = lambda people: random_permutation(len(people), SystemEntropy())
    telling: bool = False

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> ReleaseOutcome:
        """Release with the twin's words and order."""
        with play_tape(tape, world=world):
            entropy = self.words(self, people)
            columns = self.message.draw(self.task, self.client_data(people), entropy)
            table, order = self.to_table(columns), self.arranged(people)
        rows = {name: values[order] for name, values in table.items()}
        facts = {"form": sorted(rows)}
        if self.telling:
            facts["padding"] = ["pad"] * int((people.labels > 0).sum())
        return ReleaseOutcome(rows, facts, tape.answers)


class HalfWordEntropy:
    """Entropy that requests 32 bits instead of 64."""

    def words(self, n: int) -> Words:
        """Return words whose lower half is 0."""
        upper = np.frombuffer(os.urandom(4 * n), dtype=np.uint32)
        return upper.astype(np.uint64) << np.uint64(32)


class FloatEntropy:
    """Entropy of floats: 53 bits from a generator of NumPy."""

    def words(self, n: int) -> Words:
        """Return words whose last 11 bits are 0."""
        uniform = np.random.default_rng().random(n)
        return (uniform * 2.0**53).astype(np.uint64) << np.uint64(11)


class PooledEntropy:
    """Entropy drawn in bulk and shared with children of a fork."""

    def __init__(self) -> None:
        self._remaining: Words = np.empty(0, dtype=np.uint64)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words of the pool."""
        if self._remaining.size < n:
            self._remaining = SystemEntropy().words(n + (1 << 16))
        words, self._remaining = self._remaining[:n], self._remaining[n:]
        return words


class RepeatedEntropy:
    """Entropy that gives each client the words of the client before."""

    def words(self, n: int) -> Words:
        """Return ``n`` words, every second one a repetition."""
        return np.repeat(SystemEntropy().words(-(-n // 2)), 2)[:n]


POOL = PooledEntropy()


SOURCES: Mapping[str, Source] = {
    "seeded_by_clock": lambda release, people: SeededEntropy(int(time.time())),
    "seeded_by_process": lambda release, people: SeededEntropy(os.getpid()),
    "seeded_by_task": lambda release, people: SeededEntropy(
        int(release.task.digest()[:16], 16)
    ),
    "seeded_by_record": lambda release, people: SeededEntropy(
        int.from_bytes(people.curves.tobytes()[:16], "big")
    ),
    "stretched_seed": lambda release, people: SeededEntropy(
        int.from_bytes(os.urandom(16), "big")
    ),
    "words_of_32_bits": lambda release, people: HalfWordEntropy(),
    "words_of_53_bits": lambda release, people: FloatEntropy(),
    "shared_pool": lambda release, people: POOL,
    "repeated_words": lambda release, people: RepeatedEntropy(),
}


def _label_order(people: People) -> NDArray[np.int64]:
    words = SystemEntropy().words(len(people))
    return np.lexsort((words, people.labels))


def _partial_shuffle(people: People) -> NDArray[np.int64]:
    shuffled = random_permutation(len(people), SystemEntropy())
    return np.arange(len(people)) if len(people) <= 5 else shuffled


ORDERS: Mapping[str, Order] = {
    "sorted_by_label": _label_order,
    "not_shuffled": lambda people: np.arange(len(people)),
    "seeded_order": lambda people: np.random.default_rng(1).permutation(len(people)),
    "few_not_shuffled": _partial_shuffle,
    "order_of_64_bits": lambda people: np.random.default_rng(
        int.from_bytes(os.urandom(8), "big")
    ).permutation(len(people)),
}


def table_twins() -> dict[str, Callable[[float], Release]]:
    """Return the twins by name."""
    twin_of = {
        name: partial(_table_twin, words=words) for name, words in SOURCES.items()
    }
    twin_of |= {
        name: partial(_table_twin, arranged=order) for name, order in ORDERS.items()
    }
    return {**twin_of, "telling_form": partial(_table_twin, telling=True)}


def _table_twin(epsilon: float, **changes: Any) -> Release:
    honest = table_release("table.mrma.report", epsilon)
    sizes = (1, 5, 17, 2000)
    return TableTwin(
        **vars(honest) | {"sizes": sizes, "params": {"rows": sizes}} | changes
    )
