"""Draws that many channels share, weighed by densities, and draws until decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.law import Law, Mixture
from curvote.systems.utility.method.channel import Channel
from curvote.systems.utility.method.engines.base import Answers, Draws, Surface
from curvote.systems.utility.method.engines.black_box import BlackBoxSurface, Places
from curvote.systems.utility.method.intervals import anytime_interval, decide_side

# A density is the mass of this part of a feature's width, around the point.
CELL_WIDTH = 2e-6
# A smaller mass at a point is rounding.
LEAST_ATOM = 1e-12


def atom_mask(mixture: Mixture, points: FloatArray) -> NDArray[np.bool_]:
    """Return the mask of coordinates (n, m, s) that are an atom of some law."""
    mask = np.zeros(points.shape, dtype=bool)
    laws = {(i, id(law)): law for term in mixture.terms for i, law in enumerate(term)}
    for (place, _), law in laws.items():
        mask[:, :, place] |= _point_mass(law, points[:, :, place]) > LEAST_ATOM
    return mask


def mixture_density(
    mixture: Mixture, points: FloatArray, atoms: NDArray[np.bool_], widths: FloatArray
) -> FloatArray:
    """Return the density at ``points`` (n, m, s), (n, m): masses at ``atoms``.

    All laws of a ratio need the same ``atoms``. ``widths`` (s,) scale the small cell
    whose mass stands for a density; it is wrong only for points that close to where a
    density jumps.
    """
    total = np.zeros(points.shape[:2])
    cache: dict[tuple[int, int], FloatArray] = {}
    for weight, term in zip(mixture.weights.T, mixture.terms, strict=True):
        share = np.tile(weight[:, None], points.shape[1])
        for i, law in enumerate(term):
            if (i, id(law)) not in cache:
                at, half = points[:, :, i], CELL_WIDTH * widths[i] / 2
                density = (law.cdf(at + half) - law.cdf(at - half)) / (2 * half)
                if atoms[:, :, i].any():
                    density = np.where(atoms[:, :, i], _point_mass(law, at), density)
                cache[i, id(law)] = density
            share *= cache[i, id(law)]
        total += share
    return total


def _point_mass(law: Law, at: FloatArray) -> FloatArray:
    """Return one law's mass at points, (n, m)."""
    return law.cdf(at) - law.below(at)


# An interval of weighed draws takes so many for one of Clopper-Pearson's, as measured.
WEIGHTED_DRAW_COST = 4.5
# Points of a pilot, which asks the model nothing: it tells how unequal weights are.
PILOT_POINTS = 2048
# No stake is larger than this: wealth stays above zero whatever the weights.
MOST_STAKE = 0.5
BISECTIONS = 60
# More points are not held: each takes about a hundred bytes.
MOST_POOL_POINTS = 1 << 23


@dataclass(frozen=True)
class PoolPoints:
    """Points of equal parts of channels, and their mean density.

    ``atoms`` (n, m, s) says which coordinates are atoms of some channel.
    """

    record: FloatArray
    values: FloatArray
    atoms: NDArray[np.bool_]
    mean: FloatArray
    widths: FloatArray

    def weights(self, channel: Channel) -> FloatArray:
        """Return the likelihood ratio of each point in a channel, (n, m).

        0 where the density is too small for a float: that makes lower ends lower.
        """
        law = _require_law(channel, self.record)
        densities = mixture_density(law, self.values, self.atoms, self.widths)
        nothing = np.zeros_like(densities)
        return np.divide(densities, self.mean, out=nothing, where=self.mean > 0)


def _require_law(channel: Channel, values: FloatArray) -> Mixture:
    """Return the channel's law; without one a UserError."""
    law = channel.law(values)
    if law is None:
        names = ", ".join(sorted({part.mechanism.name for part in channel.parts}))
        raise UserError(
            f"{names} has no law that could be weighed; draw it by itself, with"
            " `answers` of the surface."
        )
    return law


def _draw_points(
    channels: Sequence[Channel], values: FloatArray, number: int, entropy: Entropy
) -> PoolPoints:
    """Return ``number`` draws of each channel for each of ``values`` (n, s)."""
    repeated = np.repeat(values, number, axis=0)
    shape = (len(values), number, values.shape[1])
    samples = [channel.draw(repeated, entropy).reshape(shape) for channel in channels]
    points = np.concatenate(samples, axis=1)
    laws = [_require_law(channel, values) for channel in channels]
    atoms = np.logical_or.reduce([atom_mask(law, points) for law in laws])
    widths = np.diff(channels[0].bounds, axis=1)[:, 0]
    mean = sum(mixture_density(law, points, atoms, widths) for law in laws) / len(laws)
    return PoolPoints(values, points, atoms, np.asarray(mean), widths)


@dataclass(frozen=True)
class PoolSurface(Surface):
    """Surface of a black box with answers at points that channels share.

    ``answer`` (n, m) are places of classes, at m points of each record.
    """

    black_box: BlackBoxSurface
    points: PoolPoints
    pilot: PoolPoints
    answer: Places

    def worth(self, channel: Channel) -> float:
        """Return the number of a channel's own draws that the pool replaces.

        0 where the channel has no law.
        """
        if channel.law(self.pilot.record[:1]) is None:
            return 0.0
        squares = float(np.mean(self.pilot.weights(channel) ** 2))
        return self.answer.shape[1] / squares if squares > 0 else 0.0

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return the shares by the pool, or by ``draws`` where it adds too little.

        Which of them is decided by the laws, before any answer is looked at. Each
        interval covers with the confidence by itself, also for a channel that the pool
        was not drawn from. ``queries`` counts the answers on which they rest; those of
        the pool are shared by all channels.
        """
        worth = self.worth(channel)
        if worth < WEIGHTED_DRAW_COST * draws.number:
            return self.black_box.answers(channel, draws)
        m = self.answer.shape[1]
        missed = (1 - draws.confidence) / 2
        weights = self.points.weights(channel)
        hit = [self.answer == place for place in range(self.n_classes)]
        needed = -math.log(missed)
        stake = min(math.sqrt(-2 * math.log(missed) * 4 * worth) / m, MOST_STAKE)
        low, missed_low = (
            np.stack([_lower_means(weights * k, stake, needed) for k in kinds], axis=1)
            for kinds in (hit, [~hits for hits in hit])
        )
        share = np.stack([(weights * hits).mean(axis=1) for hits in hit], axis=1)
        queries, high = np.full(len(weights), m, dtype=np.int64), 1 - missed_low
        return Answers(np.clip(share, low, high), low, high, "draws", queries)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Raise NotImplementedError, as a black box does."""
        return self.black_box.holds(low, high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the black box; the pool is drawn anew."""
        return self.black_box.arrays()


def _lower_means(values: FloatArray, stake: float, needed: float) -> FloatArray:
    """Return lower ends for the means of rows of independent values >= 0, (n,).

    Wealth is the product of 1 + stake (value - m). Whatever each value's own mean, it
    is 1 at most in the mean where m is the mean of means or more (the product of means
    is largest where they are equal), so it is 1/a with probability a (Markov).
    """
    low, high = np.zeros(len(values)), np.ones(len(values))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        wealth = np.log1p(stake * (values - middle[:, None])).sum(axis=1)
        refuted = wealth >= needed
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
        if (high - low).max() < 1e-7:
            break
    return low


def draw_pool(
    black_box: BlackBoxSurface, channels: Sequence[Channel], draws: Draws
) -> PoolSurface:
    """Return the pool of ``draws.number`` draws of each channel.

    The channels have the surface's bounds and each a law; one that has none is a
    UserError, and so are more than ``MOST_POOL_POINTS`` points.
    """
    entropy, values = draws.entropy or SystemEntropy(), black_box.question.values
    total = len(values) * len(channels) * draws.number
    if total > MOST_POOL_POINTS:
        raise UserError(
            f"A pool of {total:,} points does not fit; at most {MOST_POOL_POINTS:,} do. Take"
            " fewer draws or fewer records at a time, or draw each channel by itself."
        )
    points = _draw_points(channels, values, draws.number, entropy)
    pilot_size = max(1, PILOT_POINTS // (len(values) * len(channels)))
    pilot = _draw_points(channels, values, pilot_size, entropy)
    n, m, s = points.values.shape
    record = np.repeat(np.arange(n), m)
    pieces = black_box.ask_pieces(record, points.values.reshape(-1, s))
    answer = np.concatenate([piece.answer for piece in pieces]).reshape(n, m)
    clean, k = black_box.clean, black_box.n_classes
    return PoolSurface(clean, k, black_box, points, pilot, answer)


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
