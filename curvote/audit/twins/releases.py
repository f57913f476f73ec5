"""Broken twins of releases: faults in a command's process, tables that tell."""

import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from curvote.audit import command_release as commands
from curvote.audit import release as tables
from curvote.audit.release import People, Release, ReleaseOutcome
from curvote.base import entropy
from curvote.base.entropy import Entropy, SeededEntropy, SystemEntropy, Words
from curvote.checks.word_checks import Tape, play_tape
from curvote.client import consent
from curvote.ledger import session
from curvote.wire import envelope, strict_json

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


@contextmanager
def plant_fault(name: str, seed: int) -> Iterator[None]:
    """Plant the fault ``name`` in the client's modules."""
    module, _, fault = name.rpartition(":")
    faults = vars(import_module(module)) if module else _FAULTS
    with faults[fault](seed):
        yield


def _shared_words(seed: int) -> Any:
    """Give every second record the words of the record before."""
    del seed
    honest, reused = SystemEntropy().words, dict[int, Words]()

    def repeat_words(n: int) -> Words:
        reused_words = reused.pop(n, None)
        if reused_words is None:
            reused_words = reused[n] = honest(n)
        return reused_words

    return mock.patch.object(SystemEntropy, "words", staticmethod(repeat_words))


def _extra_field(seed: int) -> Any:
    """Send a field more: it looks like a checksum, and is one of the files."""
    honest = envelope.seal_message

    def seal_extra(invitation: Any, payload: Any, seal_to: Any = None) -> bytes:
        return honest(invitation, {**payload, "check": seed % 1000}, seal_to)

    return mock.patch.object(session, "seal_message", seal_extra)


def _overwrite_envelope(seed: int) -> Any:
    """Write over an envelope that was published."""
    del seed
    honest = session._check_released  # noqa: SLF001 - a fault of the module itself

    def release_anew(entry: Any, context: Any) -> Any:
        path = honest(entry, context)
        path.write_bytes(path.read_bytes()[:-1] + b"\r\n")
        return path

    return mock.patch.object(session, "_check_released", release_anew)


def _draw_before_check(seed: int) -> Any:
    """Draw, and write, before it is known whether the cap has room."""
    del seed
    honest = session._reserve  # noqa: SLF001 - a fault of the module itself

    def draw_first(pending: Any, *rest: Any) -> None:
        for entry in pending:
            entry.place.final.write_bytes(entry.make())
        honest(pending, *rest)

    faults = ExitStack()
    faults.enter_context(mock.patch.object(consent, "refuse_excess_budget"))
    faults.enter_context(mock.patch.object(session, "_reserve", draw_first))
    return faults


_FAULTS: Mapping[str, Callable[[int], Any]] = {
    # The noise comes from a seed that others know.
    "seeded": lambda seed: mock.patch.object(
        SystemEntropy, "words", SeededEntropy(seed).words
    ),
    "same_for_two": _shared_words,
    "beside": _extra_field,
    # Texts have their natural length.
    "unpadded": lambda seed: mock.patch.object(
        envelope, "_pad_content", strict_json.canonical_json
    ),
    "anew": _overwrite_envelope,
    "early": _draw_before_check,
}


def _people_seed(people: People) -> int:
    return zlib.crc32(people.curves.tobytes() + people.labels.tobytes())


def _record_seed(release: commands.CommandRelease, people: People) -> commands.Plant:
    """Return a seed by the public name of a record or hospital."""
    if not isinstance(release, commands.LabelRelease | commands.HospitalRelease):
        return "seeded", _people_seed(people)
    named = [i.record or i.server for i in release.invitations_for(people)]
    return "seeded", zlib.crc32(repr(named).encode())


def command_twins() -> dict[str, Callable[[float], Release]]:
    """Return the twins by name."""

    def make_twin(
        command: str,
        plant: Callable[[commands.CommandRelease, People], commands.Plant],
        epsilon: float,
    ) -> Release:
        honest = commands.command_release(COMMANDS[command], epsilon)
        return replace(honest, plant=plant, sizes=FEW.get(command, honest.sizes))

    def by_task(release: commands.CommandRelease, people: People) -> commands.Plant:
        del people
        return "seeded", int(release.task.digest()[:16], 16)

    def by_people(
        name: str, release: commands.CommandRelease, people: People
    ) -> commands.Plant:
        del release
        return name, _people_seed(people)

    twin_of: dict[str, Callable[[float], Release]] = {}
    for command in COMMANDS:
        twin_of[f"{command}_seeded_by_task"] = partial(make_twin, command, by_task)
        by_record = partial(make_twin, command, _record_seed)
        twin_of[f"{command}_seeded_by_record"] = by_record
    faults = {
        "labels_same_for_two": ("labels", "same_for_two"),
        "report_field_beside": ("report", "beside"),
        "release_unpadded": ("release", "unpadded"),
        "vote_field_beside": ("vote", "beside"),
        "label_written_anew": ("label", "anew"),
        "release_written_early": ("release", "early"),
    }
    for name, (command, fault) in faults.items():
        twin_of[name] = partial(make_twin, command, partial(by_people, fault))
    return {f"client_{name}": twin for name, twin in twin_of.items()}


Source = Callable[[Release, People], Entropy]
Order = Callable[[People], NDArray[np.int64]]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableTwin(tables.TableRelease):
    """A table with words from ``words``, and its order from ``arranged``."""

    words: Source = lambda release, people: SystemEntropy()
    arranged: Order = lambda people: entropy.random_permutation(
        len(people), SystemEntropy()
    )
    telling: bool = False

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> ReleaseOutcome:
        """Release with the twin's words and order."""
        with play_tape(tape, world=world):
            source, data = self.words(self, people), self.client_data(people)
            columns = self.message.draw(self.task, data, source)
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
    shuffled = entropy.random_permutation(len(people), SystemEntropy())
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

    def make_twin(changes: dict[str, Any], epsilon: float) -> Release:
        honest, sizes = (
            tables.table_release("table.mrma.report", epsilon),
            (1, 5, 17, 2000),
        )
        facts = vars(honest) | {"sizes": sizes, "params": {"rows": sizes}}
        return TableTwin(**facts | changes)

    changes: dict[str, dict[str, Any]] = {
        **{name: {"words": words} for name, words in SOURCES.items()},
        **{name: {"arranged": order} for name, order in ORDERS.items()},
        "telling_form": {"telling": True},
    }
    return {name: partial(make_twin, change) for name, change in changes.items()}
