"""Tape of the operating system's random words, and calls in forked processes.

Everything that may be random in a release comes from `os.urandom`, or the release is
not reproducible from what that returned: then somebody else may know its words.
"""

from __future__ import annotations

import os
import pickle
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from unittest import mock

import numpy as np

from curvote.base.entropy import SeededEntropy, Words
from curvote.base.errors import InternalError

WORD = 8


class WordMismatch(Exception):  # noqa: N818 - an observation, not an error
    """Words were requested that the operating system did not give."""


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


T = TypeVar("T")


def run_in_child(make: Callable[[], T]) -> T:
    """Return the result of ``make`` in a forked child process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(make()))
        finally:
            os._exit(0)  # no exit handlers: they are the parent's
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        pickled = stream.read()
    os.waitpid(child, 0)
    if not pickled:
        raise InternalError("a child of a fork ended without a word")
    result: T = pickle.loads(pickled)  # noqa: S301 - of our own child
    return result
