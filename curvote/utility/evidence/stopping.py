"""Draws that end as soon as a target is decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy, SystemEntropy
from curvote.utility.channel import Channel
from curvote.utility.engines.black_box import BlackBoxSurface
from curvote.utility.evidence.sequence import anytime_interval, decide_side
from curvote.validate import FloatArray

# Draws between two looks: a call of a model is dear, a look is not.
DRAWS_BETWEEN_LOOKS = 50
MOST_DRAWS = 20_000


@dataclass(frozen=True)
class SideDecision:
    """Sides of n agreements against a target, with their intervals.

    ``side`` is 1 above the target, -1 below, 0 where the draws ran out; the wrong side
    is named with probability at most 1 - confidence. ``lower`` and ``upper`` cover
    with the confidence though one looked often. ``queries`` counts the draws.
    """

    side: NDArray[np.int8]
    lower: FloatArray
    upper: FloatArray
    queries: NDArray[np.int64]


def decide_records(
    surface: BlackBoxSurface,
    channel: Channel,
    target: float,
    *,
    confidence: float = 0.95,
    most: int = MOST_DRAWS,
    entropy: Entropy | None = None,
) -> SideDecision:
    """Return the side of the target on which each record's agreement lies.

    At most ``most`` draws of a record; each decision has the confidence by itself.
    """
    hits, number = np.zeros((2, len(surface.clean)), dtype=np.int64)
    side = np.zeros(len(hits), dtype=np.int8)
    for size in _look_sizes(most):
        unknown = np.flatnonzero(side == 0)
        hits += _count_hits(surface, channel, np.repeat(unknown, size), entropy)
        number[unknown] += size
        side = decide_side(hits, number, target, confidence)
        if side.all():
            break
    return SideDecision(side, *anytime_interval(hits, number, confidence), number)


def decide_average(
    surface: BlackBoxSurface,
    channel: Channel,
    target: float,
    *,
    confidence: float = 0.95,
    most: int = MOST_DRAWS,
    entropy: Entropy | None = None,
) -> SideDecision:
    """Return the side of the target on which the average agreement lies.

    Every draw is of a record drawn at random, so that all draws together have one
    share, the average. The arrays of the decision have one entry.
    """
    words = entropy or SystemEntropy()
    pick = np.random.default_rng(words.words(4))
    hits, number = np.zeros((2, 1), dtype=np.int64)
    side = np.zeros(1, dtype=np.int8)
    for size in _look_sizes(most):
        record = pick.integers(len(surface.clean), size=size)
        hits = hits + _count_hits(surface, channel, record, words).sum()
        number = number + size
        side = decide_side(hits, number, target, confidence)
        if side.all():
            break
    return SideDecision(side, *anytime_interval(hits, number, confidence), number)


def _look_sizes(most: int) -> list[int]:
    """Return the number of draws before each look."""
    return [
        min(DRAWS_BETWEEN_LOOKS, most - done)
        for done in range(0, most, DRAWS_BETWEEN_LOOKS)
    ]


def _count_hits(
    surface: BlackBoxSurface,
    channel: Channel,
    record: NDArray[np.int64],
    entropy: Entropy | None,
) -> NDArray[np.int64]:
    """Return the number of clean answers of each record, (n,)."""
    hits = np.zeros(len(surface.clean), dtype=np.int64)
    for piece in surface.pieces(channel, record, entropy):
        right = piece.record[piece.answer == surface.clean[piece.record]]
        hits += np.bincount(right, minlength=len(hits))
    return hits
