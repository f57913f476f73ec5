"""Broken twins of releases: tables that tell, commands whose noise others know."""

import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from curvote.audit import command_release as commands
from curvote.audit.release import People, Release, ReleaseOutcome
from curvote.audit.twins import TWINS, Make, TableTwin, table_twin
from curvote.base.entropy import (
    Entropy,
    SeededEntropy,
    SystemEntropy,
    Words,
    random_permutation,
)
from curvote.checks.word_checks import Tape
from tests.audit.faults import Fault, with_fault

# One release by each command; a registry's is seen in a few records.
COMMANDS: Mapping[str, str] = {
    "answer": "client.mrma.report",
    "report": "client_report.mrma.report",
    "vote": "client_vote.mrma.vote",
    "label": "client_label.labels.code@4",
    "labels": "client_labels.labels.code@4",
    "release": "client_release.transfer.moments",
}
FEW = {"labels": (1, 5)}

Source = Callable[[Release, People], Entropy]
Order = Callable[[People], NDArray[np.int64]]
Plant = Callable[[commands.CommandRelease, People], Fault]


class HalfWordEntropy:
    """Entropy that requests 32 bits instead of 64."""

    def words(self, n: int) -> Words:
        upper = np.frombuffer(os.urandom(4 * n), dtype=np.uint32)
        return upper.astype(np.uint64) << np.uint64(32)


class FloatEntropy:
    """Entropy of floats: 53 bits from a generator of NumPy."""

    def words(self, n: int) -> Words:
        uniform = np.random.default_rng().random(n)
        return (uniform * 2.0**53).astype(np.uint64) << np.uint64(11)


class PooledEntropy:
    """Entropy drawn in bulk and shared with children of a fork."""

    def __init__(self) -> None:
        self._remaining: Words = np.empty(0, dtype=np.uint64)

    def words(self, n: int) -> Words:
        if self._remaining.size < n:
            self._remaining = SystemEntropy().words(n + (1 << 16))
        words, self._remaining = self._remaining[:n], self._remaining[n:]
        return words


POOL = PooledEntropy()


class RepeatedEntropy:
    """Entropy that gives each client the words of the client before."""

    def words(self, n: int) -> Words:
        return np.repeat(SystemEntropy().words(-(-n // 2)), 2)[:n]


SOURCES: Mapping[str, Source] = {
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


def _partial_shuffle(people: People) -> NDArray[np.int64]:
    shuffled = random_permutation(len(people), SystemEntropy())
    return np.arange(len(people)) if len(people) <= 5 else shuffled


ORDERS: Mapping[str, Order] = {
    "not_shuffled": lambda people: np.arange(len(people)),
    "seeded_order": lambda people: np.random.default_rng(1).permutation(len(people)),
    "few_not_shuffled": _partial_shuffle,
    "order_of_64_bits": lambda people: np.random.default_rng(
        int.from_bytes(os.urandom(8), "big")
    ).permutation(len(people)),
}


class TellingTable(TableTwin):
    """A table with a padding that counts labels."""

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> ReleaseOutcome:
        outcome = super().leave(people, tape, world=world)
        padding = ["pad"] * int((people.labels > 0).sum())
        return replace(outcome, facts={**outcome.facts, "padding": padding})


def table_twins() -> dict[str, Make]:
    """Return the twins by name."""
    return {
        "seeded_by_clock": TWINS["seeded_by_clock"].make,
        **{name: table_twin(words=words) for name, words in SOURCES.items()},
        "sorted_by_label": TWINS["sorted_by_label"].make,
        **{name: table_twin(arranged=order) for name, order in ORDERS.items()},
        "telling_form": table_twin(TellingTable),
    }


def _people_seed(people: People) -> int:
    return zlib.crc32(people.curves.tobytes() + people.labels.tobytes())


def _task_fault(release: commands.CommandRelease, people: People) -> Fault:
    """Return a seed that the server knows."""
    del people
    return "seeded", int(release.task.digest()[:16], 16)


def _record_fault(release: commands.CommandRelease, people: People) -> Fault:
    """Return a seed by the public name of a record or hospital."""
    if not isinstance(release, commands.LabelRelease | commands.HospitalRelease):
        return "seeded", _people_seed(people)
    named = [i.record or i.server for i in release.invitations_for(people)]
    return "seeded", zlib.crc32(repr(named).encode())


_FAULTS = {
    "labels_same_for_two": ("labels", "same_for_two"),
    "report_field_beside": ("report", "beside"),
    "release_unpadded": ("release", "unpadded"),
    "vote_field_beside": ("vote", "beside"),
    "label_written_anew": ("label", "anew"),
    "release_written_early": ("release", "early"),
}


def command_twins() -> dict[str, Make]:
    """Return the twins by name."""

    def make_twin(command: str, plant: Plant, epsilon: float) -> Release:
        honest = commands.command_release(COMMANDS[command], epsilon)
        sizes = FEW.get(command, honest.sizes)
        return with_fault(replace(honest, sizes=sizes), plant)

    twins: dict[str, Make] = {}
    for command in COMMANDS:
        for source, plant in (("task", _task_fault), ("record", _record_fault)):
            twin = partial(make_twin, command, plant)
            twins[f"client_{command}_seeded_by_{source}"] = twin
    for name, (command, fault) in _FAULTS.items():
        twins[f"client_{name}"] = partial(
            make_twin,
            command,
            lambda _, people, fault=fault: (fault, _people_seed(people)),
        )
    return twins
