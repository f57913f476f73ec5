"""Pooled and sequential draws: one set for many channels, and early stopping.

The pool is drawn from all channels in equal parts, so the weight of a point for one of
them is at most their number (Veach & Guibas 1995, balance heuristic). It pays where
channels are alike and many. Nine totals of one mechanism from .5 to 8: intervals as of
two to three times as many draws up to a total of 4, none gained at 8; five totals from
1 to 2: as of twice as many. Six mechanisms at one total: nothing is gained, and own
draws are taken. Densities cost time, so it is for models that are slow or paid by
query.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy, SystemEntropy
from curvote.errors import UserError
from curvote.mechanisms.law import Mixture
from curvote.utility.channel import Channel
from curvote.utility.engines.base import Answers, Draws, Surface
from curvote.utility.engines.black_box import BlackBoxSurface, Places
from curvote.utility.evidence.density import atom_mask, mixture_density
from curvote.validate import FloatArray

# An interval of weighed draws takes so many for one of Clopper-Pearson's, as measured.
WEIGHTED_DRAW_COST = 4.5
# Points of a pilot, which asks the model nothing: it tells how unequal weights are.
PILOT_POINTS = 2048
# No stake is larger than this: wealth stays above zero whatever the weights.
MOST_STAKE = 0.5
BISECTIONS = 60
# More points are not held: each takes about a hundred bytes.
MOST_POINTS = 1 << 23


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
        densities = mixture_density(
            _require_law(channel, self.record), self.values, self.atoms, self.widths
        )
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
    draws_by_channel = [
        channel.draw(repeated, entropy).reshape(shape) for channel in channels
    ]
    points = np.concatenate(draws_by_channel, axis=1)
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
        stake_and_level = _best_stake(m, worth, missed), -math.log(missed)
        low = np.stack(
            [_lower_means(weights * hits, *stake_and_level) for hits in hit], axis=1
        )
        lower_of_rest = np.stack(
            [_lower_means(weights * ~hits, *stake_and_level) for hits in hit], axis=1
        )
        share = np.stack([(weights * hits).mean(axis=1) for hits in hit], axis=1)
        queries = np.full(len(weights), m, dtype=np.int64)
        return Answers(
            np.clip(share, low, 1 - lower_of_rest),
            low,
            1 - lower_of_rest,
            "draws",
            queries,
        )

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Raise NotImplementedError, as a black box does."""
        return self.black_box.holds(low, high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the black box; the pool is drawn anew."""
        return self.black_box.arrays()


def _best_stake(m: int, worth: float, missed: float) -> float:
    """Return the best stake at a variance of a quarter of the weights'."""
    best = math.sqrt(-2 * math.log(missed) * 4 * worth) / m
    return min(best, MOST_STAKE)


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
    UserError, and so are more than ``MOST_POINTS`` points.
    """
    entropy, values = draws.entropy or SystemEntropy(), black_box.question.values
    total = len(values) * len(channels) * draws.number
    if total > MOST_POINTS:
        raise UserError(
            f"A pool of {total:,} points does not fit; at most {MOST_POINTS:,} do. Take"
            " fewer draws or fewer records at a time, or draw each channel by itself."
        )
    points = _draw_points(channels, values, draws.number, entropy)
    pilot_size = max(1, PILOT_POINTS // (len(values) * len(channels)))
    pilot = _draw_points(channels, values, pilot_size, entropy)
    n, m, s = points.values.shape
    pieces = black_box.ask_pieces(
        np.repeat(np.arange(n), m), points.values.reshape(-1, s)
    )
    answer = np.concatenate([piece.answer for piece in pieces]).reshape(n, m)
    return PoolSurface(
        black_box.clean, black_box.n_classes, black_box, points, pilot, answer
    )
