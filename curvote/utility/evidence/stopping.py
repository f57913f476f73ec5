"""Draws that end as soon as a target is decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy, SystemEntropy
from curvote.utility.channel import Channel
from curvote.utility.engines.black_box import Drawn
from curvote.utility.evidence.sequence import decided, interval
from curvote.validate import FloatArray

# Draws between two looks: a call of a model is dear, a look is not.
BETWEEN = 50
MOST = 20_000


@dataclass(frozen=True)
class Decision:
    """What was decided of n agreements and a target, (n,) each.

    ``side`` is 1 above the target, -1 below, 0 where the draws ran out; the wrong side
    is named with probability at most 1 - confidence. ``lower`` and ``upper`` cover
    with the confidence though one looked often. ``queries`` counts the draws.
    """

    side: NDArray[np.int8]
    lower: FloatArray
    upper: FloatArray
    queries: NDArray[np.int64]


def each_decided(
    surface: Drawn,
    channel: Channel,
    target: float,
    *,
    confidence: float = 0.95,
    most: int = MOST,
    entropy: Entropy | None = None,
) -> Decision:
    """Return on which side of the target, in (0, 1), each record's agreement lies.

    At most ``most`` draws of a record; each decision has the confidence by itself.
    """
    hits, number = np.zeros((2, len(surface.clean)), dtype=np.int64)
    side = np.zeros(len(hits), dtype=np.int8)
    for size in _looks(most):
        unknown = np.flatnonzero(side == 0)
        hits += _hits(surface, channel, np.repeat(unknown, size), entropy)
        number[unknown] += size
        side = decided(hits, number, target, confidence)
        if side.all():
            break
    return Decision(side, *interval(hits, number, confidence), number)


def average_decided(
    surface: Drawn,
    channel: Channel,
    target: float,
    *,
    confidence: float = 0.95,
    most: int = MOST,
    entropy: Entropy | None = None,
) -> Decision:
    """Return on which side of the target the records' average agreement lies.

    Every draw is of a record drawn at random, so that all draws together have one
    share, the average. The arrays of the decision have one entry.
    """
    words = entropy or SystemEntropy()
    pick = np.random.default_rng(words.words(4))
    hits, number = np.zeros((2, 1), dtype=np.int64)
    side = np.zeros(1, dtype=np.int8)
    for size in _looks(most):
        record = pick.integers(len(surface.clean), size=size)
        hits = hits + _hits(surface, channel, record, words).sum()
        number = number + size
        side = decided(hits, number, target, confidence)
        if side.all():
            break
    return Decision(side, *interval(hits, number, confidence), number)


def _looks(most: int) -> list[int]:
    """Return how many draws are made before each look."""
    return [min(BETWEEN, most - done) for done in range(0, most, BETWEEN)]


def _hits(
    surface: Drawn,
    channel: Channel,
    record: NDArray[np.int64],
    entropy: Entropy | None,
) -> NDArray[np.int64]:
    """Return how often each record's answer was the clean one, (n,)."""
    hits = np.zeros(len(surface.clean), dtype=np.int64)
    for piece in surface.pieces(channel, record, entropy):
        right = piece.record[piece.answer == surface.clean[piece.record]]
        hits += np.bincount(right, minlength=len(hits))
    return hits
