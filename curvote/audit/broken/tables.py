"""Twins of a whole table: words that somebody may know, an order that tells."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.leaving import Left, People, Release
from curvote.audit.table_release import TableRelease, table_release
from curvote.audit.tape import Tape, playing
from curvote.entropy import Entropy, SeededEntropy, SystemEntropy, Words, permutation

Source = Callable[[Release, People], Entropy]
Order = Callable[[People], NDArray[np.int64]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Twin(TableRelease):
    """A table whose words come from ``words``, and its order from ``arranged``."""

    words: Source = lambda release, people: SystemEntropy()
    arranged: Order = lambda people: permutation(len(people), SystemEntropy())
    telling: bool = False

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> Left:
        """Release as the twin does."""
        with playing(tape, world=world):
            entropy = self.words(self, people)
            drawn = self.message.draw(self.task, self.known(people), entropy)
            table, order = self.table(drawn), self.arranged(people)
        rows = {name: values[order] for name, values in table.items()}
        facts = {"form": sorted(rows)}
        if self.telling:
            facts["padding"] = ["pad"] * int((people.labels > 0).sum())
        return Left(rows, facts, tape.asked)


class HalfWords:
    """Asks for 32 bits where 64 are due."""

    def words(self, n: int) -> Words:
        """Return words whose lower half is 0."""
        upper = np.frombuffer(os.urandom(4 * n), dtype=np.uint32)
        return upper.astype(np.uint64) << np.uint64(32)


class FloatWords:
    """Makes words of floats: 53 bits, and from a generator of NumPy's."""

    def words(self, n: int) -> Words:
        """Return words whose last 11 bits are 0."""
        uniform = np.random.default_rng().random(n)
        return (uniform * 2.0**53).astype(np.uint64) << np.uint64(11)


class Pool:
    """Draws many words at once and hands them out, in children of a fork, too."""

    def __init__(self) -> None:
        self._left: Words = np.empty(0, dtype=np.uint64)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words of the pool."""
        if self._left.size < n:
            self._left = SystemEntropy().words(n + (1 << 16))
        taken, self._left = self._left[:n], self._left[n:]
        return taken


class Again:
    """Gives each client of a cohort the words of the client before."""

    def words(self, n: int) -> Words:
        """Return ``n`` words, every second one a repetition."""
        return np.repeat(SystemEntropy().words(-(-n // 2)), 2)[:n]


POOL = Pool()


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
    "words_of_32_bits": lambda release, people: HalfWords(),
    "words_of_53_bits": lambda release, people: FloatWords(),
    "shared_pool": lambda release, people: POOL,
    "repeated_words": lambda release, people: Again(),
}


def _by_label(people: People) -> NDArray[np.int64]:
    words = SystemEntropy().words(len(people))
    return np.lexsort((words, people.labels))


def _few_stay(people: People) -> NDArray[np.int64]:
    drawn = permutation(len(people), SystemEntropy())
    return np.arange(len(people)) if len(people) <= 5 else drawn


ORDERS: Mapping[str, Order] = {
    "sorted_by_label": _by_label,
    "not_shuffled": lambda people: np.arange(len(people)),
    "seeded_order": lambda people: np.random.default_rng(1).permutation(len(people)),
    "few_not_shuffled": _few_stay,
    "order_of_64_bits": lambda people: np.random.default_rng(
        int.from_bytes(os.urandom(8), "big")
    ).permutation(len(people)),
}


def twins() -> dict[str, Callable[[float], Release]]:
    """Return the twins by name."""
    made = {name: partial(_twin, words=words) for name, words in SOURCES.items()}
    made |= {name: partial(_twin, arranged=order) for name, order in ORDERS.items()}
    return {**made, "telling_form": partial(_twin, telling=True)}


def _twin(epsilon: float, **changes: Any) -> Release:
    honest = table_release("table.mrma.report", epsilon)
    sizes = (1, 5, 17, 2000)
    return Twin(**vars(honest) | {"sizes": sizes, "params": {"rows": sizes}} | changes)
