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

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy, SystemEntropy
from curvote.errors import UserError
from curvote.mechanisms.law import Mixture
from curvote.utility.channel import Channel
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.engines.black_box import Drawn
from curvote.utility.evidence import binomial
from curvote.utility.evidence.density import atomic, density
from curvote.validate import FloatArray

# An interval of weighed draws takes so many for one of Clopper-Pearson's, as measured.
PRICE = 4.5
# Points of a pilot, which asks the model nothing: it tells how unequal weights are.
PILOT = 2048
# No stake is larger than this: wealth stays above zero whatever the weights.
MOST_STAKE = 0.5
STEPS = 60


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
        """Return how many times as likely each point is in the channel, (n, m)."""
        own = density(_law(channel, self.record), self.seen, self.atoms, self.widths)
        return own / self.mean


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
class Pool:
    """The model's answers at points that ``channels`` share; ``number`` of each.

    ``answer`` (n, m) are places of classes. ``queries`` of a record are all of its m.
    """

    drawn: Drawn
    channels: Sequence[Channel]
    number: int
    points: Points
    pilot: Points
    answer: NDArray[np.int64]

    @property
    def queries(self) -> int:
        """The questions that were asked for each record."""
        return int(self.answer.shape[1])

    def worth(self, channel: Channel) -> float:
        """Return for how many draws of its own the pool stands, from the pilot."""
        squares = float(np.mean(self.pilot.weights(channel) ** 2))
        return self.queries / squares if squares > 0 else 0.0

    def answers(self, channel: Channel, confidence: float = 0.95) -> Answers:
        """Return each class's share for a channel, (n, K), whose law is known.

        Each interval covers with the confidence by itself, also for a channel that is
        none of the pool's. For one that is, its own draws are taken where the others
        add too little; that is decided by the laws, before any answer. ``queries``
        are a channel's part of the pool.
        """
        own = [i for i, each in enumerate(self.channels) if each is channel]
        if own and self.worth(channel) < PRICE * self.number:
            return self._own(own[0], confidence)
        weights = self.points.weights(channel)
        stake = self._stake(channel, confidence)
        hit = self.answer[:, :, None] == np.arange(self.drawn.n_classes)
        share = np.einsum("nm,nmk->nk", weights, hit) / self.queries
        needed = -math.log((1 - confidence) / 2)
        low = np.stack(
            [_lower(weights * h, stake, needed) for h in hit.T.swapaxes(1, 2)]
        )
        others = [_lower(weights * ~h, stake, needed) for h in hit.T.swapaxes(1, 2)]
        high = 1 - np.stack(others)
        share = np.clip(share, low.T, high.T)
        return Answers(share, low.T, high.T, "draws", self._part())

    def _part(self) -> NDArray[np.int64]:
        return np.full(len(self.answer), self.number, dtype=np.int64)

    def _own(self, place: int, confidence: float) -> Answers:
        own = self.answer[:, place * self.number : (place + 1) * self.number]
        counts = (own[:, :, None] == np.arange(self.drawn.n_classes)).sum(axis=1)
        low, high = binomial.interval(counts, self.number, confidence)
        return Answers(counts / self.number, low, high, "draws", self._part())

    def _stake(self, channel: Channel, confidence: float) -> float:
        """Return the stake that is best at a variance of a quarter: by the pilot."""
        variance = self.queries / max(self.worth(channel), 1.0) / 4
        stake = math.sqrt(2 * math.log(2 / (1 - confidence)) / self.queries / variance)
        return min(stake, MOST_STAKE)


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
    UserError.
    """
    entropy, values = draws.entropy or SystemEntropy(), drawn.question.values
    points = _points(channels, values, draws.number, entropy)
    each = max(1, PILOT // (len(values) * len(channels)))
    pilot = _points(channels, values, each, entropy)
    n, m, s = points.seen.shape
    record = np.repeat(np.arange(n), m)
    pieces = drawn.asked(record, points.seen.reshape(-1, s))
    answer = np.concatenate([piece.answer for piece in pieces]).reshape(n, m)
    return Pool(drawn, channels, draws.number, points, pilot, answer)
