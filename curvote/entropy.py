"""Random 64-bit words: from the operating system, or from a seed in studies.

A study's streams are named, never shared by accident: one for each stage, purpose,
replicate and block of clients, so that results do not depend on workers or batch size.
The ids below are published; changing one changes every stored result.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

CLIENT_BLOCK = 65_536
STAGES = {"shared": 0, "ingest": 1, "project": 2, "privatize": 3, "train": 4}
STAGES |= {"evaluate": 5, "aggregate": 6, "report": 7}
STAGES |= {"exchange": 8, "reevaluate": 9, "combine": 10}
STAGES |= {"refine": 11}
PURPOSES = {"split": 1, "simulate": 2, "feature_noise": 3, "label_noise": 4, "vote": 5}
PURPOSES |= {"draw": 6, "shuffle": 7, "majority": 8, "pool": 9, "histogram": 10}


class Entropy(Protocol):
    """A source of independent, uniformly distributed 64-bit words."""

    def words(self, n: int) -> Words:
        """Return ``n`` fresh words."""
        ...


class SystemEntropy:
    """Words from the operating system: the only source that protects anybody."""

    def words(self, n: int) -> Words:
        """Return ``n`` words that nobody can repeat."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


class SeededEntropy:
    """Reproducible words for studies; whoever knows the seed can remove the noise."""

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        self._generator = np.random.PCG64DXSM(seed)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words of this stream."""
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)


def permutation(n: int, entropy: Entropy) -> NDArray[np.int64]:
    """Return the numbers 0..n-1 in an order drawn from ``n`` fresh words.

    Equal words, once in 2^65/n^2 orders, are drawn again: so every order is as likely.
    """
    while np.unique(words := entropy.words(n)).size < n:
        pass
    return np.argsort(words)


def sequence(
    seed: int, stage: str, purpose: str, replicate: int, block: int = 0
) -> np.random.SeedSequence:
    """Return the seed sequence of one named stream of a study."""
    key = (STAGES[stage], PURPOSES[purpose], replicate, block)
    return np.random.SeedSequence(seed, spawn_key=key)


def generator(
    seed: int, stage: str, purpose: str, replicate: int
) -> np.random.Generator:
    """Return a numpy generator for draws that protect nobody (splits, resampling)."""
    return np.random.default_rng(sequence(seed, stage, purpose, replicate))


def client_streams(
    seed: int, stage: str, purpose: str, replicate: int, n: int
) -> Iterator[tuple[slice, SeededEntropy]]:
    """Yield ``(clients, entropy)`` for each block of 65,536 clients of ``n``."""
    for block, start in enumerate(range(0, n, CLIENT_BLOCK)):
        clients = slice(start, min(start + CLIENT_BLOCK, n))
        words = sequence(seed, stage, purpose, replicate, block)
        yield clients, SeededEntropy(words)
