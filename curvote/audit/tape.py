"""The operating system's random words, replaced by a tape or written down.

Everything that may be random in a release comes from `os.urandom`, or the release is
not reproducible from what that returned: then somebody else may know its words.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from unittest import mock

import numpy as np

from curvote.entropy import SeededEntropy, Words

WORD = 8


class Mismatch(Exception):  # noqa: N818 - an observation, not an error
    """Words were asked for that the operating system did not give in this form."""


@dataclass
class Tape:
    """Stands in for `os.urandom` and writes down each answer.

    With a ``seed`` the answers are those of a stream, with a ``word`` that word again
    and again, without either the real ones.
    """

    seed: int | None = None
    word: int | None = None
    asked: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._real: Callable[[int], bytes] = os.urandom
        self._stream = None if self.seed is None else SeededEntropy(self.seed)

    def __call__(self, n: int) -> bytes:
        """Return ``n`` bytes."""
        if self.word is not None:
            given = (self.word.to_bytes(WORD, sys.byteorder) * (-(-n // WORD)))[:n]
        elif self._stream is None:
            given = self._real(n)
        else:
            given = self._stream.words(-(-n // WORD)).tobytes()[:n]
        self.asked.append(given)
        return given


class Given:
    """Entropy that hands on what a tape wrote down: 64 bits for a word, in order."""

    def __init__(self, asked: Sequence[bytes]) -> None:
        self._left = list(asked)

    @property
    def left(self) -> int:
        """How many answers were not used."""
        return len(self._left)

    def skip(self, n: int) -> None:
        """Leave out the next ``n`` answers, which were for something else."""
        del self._left[:n]

    def words(self, n: int) -> Words:
        """Return the next answer as ``n`` words; one of another length: Mismatch."""
        while self._left and not self._left[0]:  # that nothing was asked tells nothing
            self._left.pop(0)
        if n == 0:
            return np.empty(0, dtype=np.uint64)
        if not self._left or len(self._left[0]) != WORD * n:
            raise Mismatch
        return np.frombuffer(self._left.pop(0), dtype=np.uint64)


@contextmanager
def playing(tape: Tape, *, world: int = 0) -> Iterator[Tape]:
    """Let ``tape`` answer for the operating system.

    ``world`` changes what else a careless generator may be seeded from: the clock, the
    process, and the global generators of Python and NumPy.
    """
    now = time.time() + 100_000.0 * world
    with ExitStack() as patches:
        # `random` keeps a copy of its own; `secrets`, `uuid` and NumPy use that.
        for place in ("os.urandom", "random._urandom"):
            patches.enter_context(mock.patch(place, tape))
        if world:
            pid = os.getpid() + world
            patches.enter_context(mock.patch("os.getpid", return_value=pid))
            patches.enter_context(mock.patch("time.time", return_value=now))
            patches.enter_context(
                mock.patch("time.time_ns", return_value=int(now * 1e9))
            )
        random.seed(world)
        np.random.seed(world)  # noqa: NPY002 - what a careless release might use
        yield tape
