"""Checks of random words: known answers, odd inputs, shared noise, word counts.

Stored studies rest on the map from words to outputs, so it may not change unnoticed. It
is looked at where chance never goes: words next to thresholds, words without their low
or their high half, all zeros, all ones; calls for 1, 5, 17 and 100 clients.

`python -m tests.audit.answers` writes the known answers anew, for a change of the map
that is meant.

Everything that may be random in a release comes from `os.urandom`, or the release is
not reproducible from what that returned (a `Tape`): then somebody else may know its
words.
"""

import csv
import hashlib
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from unittest import mock

import numpy as np

from curvote.base.entropy import SeededEntropy, SystemEntropy, Words
from curvote.base.validate import FloatArray
from curvote.chain.stage import CLIENT_BLOCK
from curvote.checks.events import proportion_bounds
from curvote.checks.subject import Subject

WORD = 8


class WordMismatch(Exception):  # noqa: N818 - an observation, not an error
    """Words were requested that the operating system did not give, or nobody."""


@dataclass
class Tape:
    """A substitute of `os.urandom` that records each answer.

    With a ``seed`` the answers are those of a stream, with a ``word`` that word again
    and again, without either the real ones.
    """

    seed: int | None = None
    word: int | None = None
    answers: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._real: Callable[[int], bytes] = os.urandom
        self._stream = None if self.seed is None else SeededEntropy(self.seed)

    def __call__(self, n: int) -> bytes:
        """Return ``n`` bytes."""
        if self.word is not None:
            answer = (self.word.to_bytes(WORD, sys.byteorder) * (-(-n // WORD)))[:n]
        elif self._stream is None:
            answer = self._real(n)
        else:
            answer = self._stream.words(-(-n // WORD)).tobytes()[:n]
        self.answers.append(answer)
        return answer


class ReplayedEntropy:
    """Entropy that replays a tape's answers: 64 bits for a word, in order."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self._remaining = list(answers)

    @property
    def remaining(self) -> int:
        """The number of unused answers."""
        return len(self._remaining)

    def skip(self, n: int) -> None:
        """Skip the next ``n`` answers."""
        del self._remaining[:n]

    def words(self, n: int) -> Words:
        """Return the next answer as ``n`` words; one of another length: Mismatch."""
        # That nothing was asked tells nothing.
        while self._remaining and not self._remaining[0]:
            self._remaining.pop(0)
        if n == 0:
            return np.empty(0, dtype=np.uint64)
        if not self._remaining or len(self._remaining[0]) != WORD * n:
            raise WordMismatch
        return np.frombuffer(self._remaining.pop(0), dtype=np.uint64)


@contextmanager
def play_tape(tape: Tape, *, world: int = 0) -> Iterator[Tape]:
    """Replace the operating system's randomness by ``tape``.

    ``world`` changes what else a careless generator may be seeded from: the clock, the
    process, and the global generators of Python and NumPy.
    """
    now = time.time() + 100_000.0 * world
    with ExitStack() as patches:
        # `random` keeps a copy of its own; `secrets`, `uuid` and NumPy use that.
        for place in ("os.urandom", "random._urandom"):
            patches.enter_context(mock.patch(place, tape))
        if world:
            answers = {
                "os.getpid": os.getpid() + world,
                "time.time": now,
                "time.time_ns": int(now * 1e9),
            }
            for place, value in answers.items():
                patches.enter_context(mock.patch(place, return_value=value))
        random.seed(world)
        np.random.seed(world)  # noqa: NPY002 - what a careless release might use
        yield tape


SEED = 7
SIZES = (1, 5, 17, 100)
_HALF = np.uint64((1 << 32) - 1)
_ALL = np.uint64((1 << 64) - 1)
# Where PrivUnit's float arithmetic may differ between processors: far below it.
DIGITS = 8
ANSWERS_FILE = Path(__file__).with_name("known_answers.csv")


_LINES = ANSWERS_FILE.read_text(encoding="utf-8").splitlines()
(_, *_LEVELS), *_ROWS = csv.reader(_LINES)
KNOWN_ANSWERS: dict[str, str] = {
    f"{name} {level}": answer
    for name, *row in _ROWS
    for level, answer in zip(_LEVELS, row, strict=True)
}


class Patterned:
    """A stream in which half of the words have a pattern.

    ``near`` are words that decide: thresholds, of which the neighbours are tried, too.
    """

    def __init__(self, seed: int, near: tuple[int, ...]) -> None:
        self._words = SeededEntropy(seed)
        around = {t + off for t in near for off in (-(1 << 31), -1, 0, 1)}
        edges = sorted(t for t in around if 0 <= t < 1 << 64)
        self._edges = np.array([0, *edges, int(_ALL)], dtype=np.uint64)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""
        words, which = self._words.words(n).copy(), self._words.words(n)
        kind = which % np.uint64(8)
        edge = self._edges[(which >> np.uint64(8)) % np.uint64(len(self._edges))]
        words = np.where(kind == 0, words & _HALF, words)
        words = np.where(kind == 1, words & ~_HALF, words)
        return np.where(kind == 2, edge, words)


def check_answers(subject: Subject) -> str | None:
    """Compare the answers with the known ones of this claim, if any."""
    expected = KNOWN_ANSWERS.get(answer_key(subject))
    if expected is None or expected == answer_digest(subject):
        return None
    return "chosen words lead to other outputs than they always did"


def answer_key(subject: Subject) -> str:
    """Return the name under which a subject's answers are known."""
    return f"{subject.stands_for} {subject.budget.epsilon!r}"


def answer_digest(subject: Subject) -> str:
    """Return the digest of the subject's outputs for the chosen words."""
    sha = hashlib.sha256()
    for n in SIZES:
        entropy = Patterned(SEED + n, subject.deciding)
        rng = np.random.Generator(np.random.PCG64DXSM(SEED + n))
        for _ in range(max(1, 40 // n)):
            clients = subject.many(n, rng)
            outputs = subject.view(subject.send(clients, entropy))
            sha.update((np.round(outputs, DIGITS) + 0.0).tobytes())
    return sha.hexdigest()[:16]


class RefusingEntropy:
    """Entropy that must not be requested."""

    def words(self, n: int) -> Words:
        """Raise WordMismatch for ``n`` words."""
        raise WordMismatch(n)


def check_odd_inputs(subject: Subject, seed: int) -> str | None:
    """Check that odd inputs are refused or give the bytes of their twins."""
    wrong = []
    with warnings.catch_warnings():
        # What numpy says of odd numbers is no refusal.
        warnings.simplefilter("ignore")
        for odd in subject.odd_inputs():
            try:
                subject.release(odd.value, RefusingEntropy())
            except (ValueError, TypeError):
                continue
            except WordMismatch:
                pass  # without it: an empty batch, or a release without noise
            if odd.twin is None:
                wrong.append(f"{odd.name} is released")
                continue
            try:
                odd_bytes = subject.release(odd.value, SeededEntropy(seed))
                twin_bytes = subject.release(odd.twin, SeededEntropy(seed))
            except (ValueError, TypeError) as error:
                late = f"refused only after words were drawn ({error})"
                wrong.append(f"{odd.name} is {late}")
                continue
            if odd_bytes != twin_bytes:
                wrong.append(f"{odd.name} is not released as what it stands for")
    return "; ".join(wrong) or None


CLIENTS = 20_000
FEWEST = 1000


def check_independence(
    subject: Subject, x: object, outputs: object, alpha: float
) -> str | None:
    """Compare how often independent outputs agree.

    Clients with the same input ``x``: next to each other, a block of 65,536 apart in
    ``outputs``, and in two calls with fresh system entropy. They may agree as often as
    clients of two calls at other places; wrong with probability ``alpha`` at most.
    """
    n = min(CLIENTS, len(subject.view(outputs)))
    calls = [subject.view(subject.draw(x, n, SystemEntropy())) for _ in range(2)]
    first, second = calls
    batch = subject.view(outputs)
    reference = _agreement_count(first[:-7], second[7:])
    even = first[: n // 2 * 2]
    suspects = {
        "next to each other in one call": _agreement_count(even[::2], even[1::2]),
        "in two calls of one process": _agreement_count(first, second),
    }
    if len(batch) >= CLIENT_BLOCK + FEWEST:
        # Disjoint pairs, so that the agreements are independent draws.
        next_block = batch[CLIENT_BLOCK : 2 * CLIENT_BLOCK]
        far = _agreement_count(next_block, batch[: len(next_block)])
        suspects["65,536 clients apart"] = far
    suspect_alpha = alpha / (2 * len(suspects))
    _, chance = proportion_bounds(reference.sum(), reference.size, suspect_alpha)
    for where, same in suspects.items():
        least, _ = proportion_bounds(same.sum(), same.size, suspect_alpha)
        if least > chance:
            why = f"clients {where} got equal outputs {same.mean():.3g} of the time"
            return f"{why}, by chance {reference.mean():.3g}"
    return None


def _agreement_count(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray((first == second).all(axis=1), dtype=np.float64)


RUNS = 60
SLOW_RUNS = 8  # where each client's draw is a call of its own
COUNTED_CLIENTS = 8
MOST = 7.0  # standard deviations of a difference of two means


class CountingEntropy(SeededEntropy):
    """A seeded stream that counts requested words."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.word_count = 0

    def words(self, n: int) -> Words:
        """Return the next ``n`` words, and count them."""
        self.word_count += n
        return super().words(n)


def check_word_counts(subject: Subject, seed: int) -> str | None:
    """Compare the words drawn for pairs of inputs, from the same streams.

    They differ at all; or on average, where candidates are rejected.
    """
    counts = []
    for x in subject.inputs(np.random.default_rng(seed)):
        runs = range(RUNS if subject.batched else SLOW_RUNS)
        streams = [CountingEntropy(seed + run) for run in runs]
        for entropy in streams:
            subject.draw(x, COUNTED_CLIENTS, entropy)
        counts.append(np.array([float(entropy.word_count) for entropy in streams]))
    for (i, first), (j, second) in combinations(enumerate(counts), 2):
        gap = first - second
        if not gap.any():
            continue
        spread = gap.std(ddof=1) / np.sqrt(len(gap))
        if not subject.rejects or abs(gap.mean()) > MOST * spread:
            means = f"{first.mean():.4g} and {second.mean():.4g}"
            return f"inputs {i} and {j} draw {means} words on average"
    return None
