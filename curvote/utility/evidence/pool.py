"""One set of draws for many channels: each is weighed by how likely it was in each.

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
from curvote.utility.engines.black_box import Drawn, Places
from curvote.utility.evidence.density import atomic, density
from curvote.validate import FloatArray

# An interval of weighed draws takes so many for one of Clopper-Pearson's, as measured.
PRICE = 4.5
# Points of a pilot, which asks the model nothing: it tells how unequal weights are.
PILOT = 2048
# No stake is larger than this: wealth stays above zero whatever the weights.
MOST_STAKE = 0.5
STEPS = 60
# More points are not held: each takes about a hundred bytes.
MOST_POINTS = 1 << 23


@dataclass(frozen=True)
class Points:
    """Points ``seen`` (n, m, s) of equal parts of channels, and their mean density.

    ``atoms`` (n, m, s) says which coordinates are atoms of some channel.
    """

    record: FloatArray
    seen: FloatArray
    atoms: NDArray[np.bool_]
    mean: FloatArray
    widths: FloatArray

    def weights(self, channel: Channel) -> FloatArray:
        """Return how many times as likely each point is in the channel, (n, m).

        0 where the density is too small for a float: that makes lower ends lower.
        """
        own = density(_law(channel, self.record), self.seen, self.atoms, self.widths)
        nothing = np.zeros_like(own)
        return np.divide(own, self.mean, out=nothing, where=self.mean > 0)


def _law(channel: Channel, values: FloatArray) -> Mixture:
    law = channel.law(values)
    if law is None:
        names = ", ".join(sorted({part.mechanism.name for part in channel.parts}))
        raise UserError(
            f"{names} has no law that could be weighed; draw it by itself, with"
            " `answers` of the surface."
        )
    return law


def _points(
    channels: Sequence[Channel], values: FloatArray, number: int, entropy: Entropy
) -> Points:
    """Return ``number`` draws of each channel for each of ``values`` (n, s)."""
    repeated = np.repeat(values, number, axis=0)
    shape = (len(values), number, values.shape[1])
    drawn = [each.draw(repeated, entropy).reshape(shape) for each in channels]
    seen = np.concatenate(drawn, axis=1)
    laws = [_law(each, values) for each in channels]
    atoms = np.logical_or.reduce([atomic(law, seen) for law in laws])
    widths = np.diff(channels[0].bounds, axis=1)[:, 0]
    mean = sum(density(law, seen, atoms, widths) for law in laws) / len(laws)
    return Points(values, seen, atoms, np.asarray(mean), widths)


@dataclass(frozen=True)
class Pool(Surface):
    """A black box's surface, with answers at points that several channels share.

    ``answer`` (n, m) are places of classes, at m points of each record.
    """

    drawn: Drawn
    points: Points
    pilot: Points
    answer: Places

    def worth(self, channel: Channel) -> float:
        """Return for how many draws of its own the pool stands, by the pilot.

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
        if worth < PRICE * draws.number:
            return self.drawn.answers(channel, draws)
        m = self.answer.shape[1]
        missed = (1 - draws.confidence) / 2
        weights = self.points.weights(channel)
        hit = [self.answer == place for place in range(self.n_classes)]
        how = _stake(m, worth, missed), -math.log(missed)
        low = np.stack([_lower(weights * each, *how) for each in hit], axis=1)
        others = np.stack([_lower(weights * ~each, *how) for each in hit], axis=1)
        share = np.stack([(weights * each).mean(axis=1) for each in hit], axis=1)
        queries = np.full(len(weights), m, dtype=np.int64)
        return Answers(
            np.clip(share, low, 1 - others), low, 1 - others, "draws", queries
        )

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Raise NotImplementedError, as a black box does."""
        return self.drawn.holds(low, high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what the black box keeps; the pool is drawn anew."""
        return self.drawn.arrays()


def _stake(m: int, worth: float, missed: float) -> float:
    """Return the stake that is best at a variance of a quarter of the weights'."""
    best = math.sqrt(-2 * math.log(missed) * 4 * worth) / m
    return min(best, MOST_STAKE)


def _lower(values: FloatArray, stake: float, needed: float) -> FloatArray:
    """Return lower ends for the means of rows of independent values >= 0, (n,).

    Wealth is the product of 1 + stake (value - m). Whatever each value's own mean, it
    is 1 at most in the mean where m is the mean of means or more (the product of means
    is largest where they are equal), so it is 1/a with probability a (Markov).
    """
    low, high = np.zeros(len(values)), np.ones(len(values))
    for _ in range(STEPS):
        middle = (low + high) / 2
        wealth = np.log1p(stake * (values - middle[:, None])).sum(axis=1)
        refuted = wealth >= needed
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
        if (high - low).max() < 1e-7:
            break
    return low


def pool(drawn: Drawn, channels: Sequence[Channel], draws: Draws) -> Pool:
    """Return ``draws.number`` draws of each channel, asked once for all of them.

    The channels have the surface's bounds and each a law; one that has none is a
    UserError, and so are more than ``MOST_POINTS`` points.
    """
    entropy, values = draws.entropy or SystemEntropy(), drawn.question.values
    total = len(values) * len(channels) * draws.number
    if total > MOST_POINTS:
        raise UserError(
            f"A pool of {total:,} points does not fit; at most {MOST_POINTS:,} do. Take"
            " fewer draws or fewer records at a time, or draw each channel by itself."
        )
    points = _points(channels, values, draws.number, entropy)
    each = max(1, PILOT // (len(values) * len(channels)))
    pilot = _points(channels, values, each, entropy)
    n, m, s = points.seen.shape
    pieces = drawn.asked(np.repeat(np.arange(n), m), points.seen.reshape(-1, s))
    answer = np.concatenate([piece.answer for piece in pieces]).reshape(n, m)
    return Pool(drawn.clean, drawn.n_classes, drawn, points, pilot, answer)
