"""Random streams of a study, named by the stage that draws and the purpose.

One stream for each stage, purpose, repetition and block of clients, so that results do
not depend on workers or batch size. The first names have published numbers; changing
one changes every stored result. Any other name has the number that its SHA-256 gives,
above all published ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import numpy as np

from curvote.base.entropy import SeededEntropy, StudyStreams

CLIENT_BLOCK: Final = 65_536
STAGES: Final = {
    "shared": 0,
    "ingest": 1,
    "project": 2,
    "privatize": 3,
    "train": 4,
    "evaluate": 5,
    "aggregate": 6,
    "report": 7,
    "exchange": 8,
    "reevaluate": 9,
    "combine": 10,
    "refine": 11,
}
PURPOSES: Final = {
    "split": 1,
    "simulate": 2,
    "feature_noise": 3,
    "label_noise": 4,
    "vote": 5,
    "draw": 6,
    "shuffle": 7,
    "majority": 8,
    "pool": 9,
    "histogram": 10,
}
_UNPUBLISHED = 1 << 31


def seed_sequence(
    seed: int, stage: str, purpose: str, number: int, block: int = 0
) -> np.random.SeedSequence:
    """Return the seed sequence of one stream; ``number`` is the repetition's."""
    names = _stream_number(stage, STAGES), _stream_number(purpose, PURPOSES)
    return np.random.SeedSequence(seed, spawn_key=(*names, number, block))


def generator(
    seed: int, stage: str, purpose: str, number: int, block: int = 0
) -> np.random.Generator:
    """Return a numpy generator for draws that protect nobody (splits, resampling)."""
    return np.random.default_rng(seed_sequence(seed, stage, purpose, number, block))


def client_noise(
    seed: int, stage: str, number: int, n: int
) -> Iterator[tuple[slice, StudyStreams]]:
    """Yield (clients, their noise) for each block of 65,536 clients of ``n``.

    Where there is no client there is one block, of nobody.
    """
    for block, start in enumerate(range(0, max(n, 1), CLIENT_BLOCK)):
        part = slice(start, min(start + CLIENT_BLOCK, n))
        yield part, block_noise(seed, stage, number, block)


def block_noise(seed: int, stage: str, number: int, block: int) -> StudyStreams:
    """Return the noise of one block of clients."""

    def make(purpose: str) -> SeededEntropy:
        return SeededEntropy(seed_sequence(seed, stage, purpose, number, block))

    return StudyStreams(make)


def _stream_number(name: str, published: Mapping[str, int]) -> int:
    """Return the published number of a name, or the derived one."""
    number = published.get(name)
    return derived_number(name) if number is None else number


@cache
def derived_number(name: str) -> int:
    """Return the number in [2^31, 2^32) of a name without published one."""
    digest = hashlib.sha256(name.encode()).digest()
    return _UNPUBLISHED | int.from_bytes(digest[:4], "big")
