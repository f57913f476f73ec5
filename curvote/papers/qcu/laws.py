"""Noise laws of QCU on [0, 1], as drawn in the paper: to compare, never to protect.

Shipped mechanisms stand in `curvote.mechanisms`. These differ from them on purpose.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from scipy.special import ndtr, ndtri

from curvote.base.validate import FloatArray
from curvote.chain.measure import Look
from curvote.mechanisms import base
from curvote.mechanisms.factory import make
from curvote.papers.qcu.studies import BOUNDS, UNIT
from curvote.systems.utility.method.engines.base import Channel, Draws, Part, Surface

DELTA: Final = 0.052  # of the Gaussian, for each feature
_SAME: Final = 1e-9  # a level that is the value itself, but for rounding


class PaperLaw(ABC):
    """A law of the paper for values in [0, 1], with outputs in [0, 1].

    What falls outside is drawn again, and every time counts as a wrong answer.
    """

    @abstractmethod
    def law(self, x: FloatArray) -> base.Law:
        """Return the laws of accepted outputs, for values (n,)."""

    @abstractmethod
    def draw(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return one accepted draw for each value."""

    def inside(self, x: FloatArray) -> FloatArray:
        """Return the probability (n,) that a draw is accepted."""
        return np.ones(len(x))


@dataclass(frozen=True)
class Piecewise(PaperLaw):
    """Density ``high`` within ``half`` of x, pushed into [0, 1], ``low`` elsewhere."""

    high: float
    low: float
    half: float

    def _start(self, x: FloatArray) -> FloatArray:
        return np.clip(x, self.half, 1 - self.half) - self.half

    def law(self, x: FloatArray) -> base.Law:
        """Return the laws for values (n,), without atoms."""
        return base.continuous_law(x[:, None], self._cdf, 0.0, 1.0)

    def _cdf(self, x: FloatArray, at: FloatArray) -> FloatArray:
        within = np.clip(at - self._start(x), 0, 2 * self.half)
        more = (self.high - self.low) * within
        return np.asarray(np.minimum(self.low * np.clip(at, 0, 1) + more, 1))

    def draw(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return one draw for each value."""
        start, place = self._start(x), rng.random(x.shape)
        likelier = rng.random(x.shape) < 2 * self.half * (self.high - self.low)
        return np.asarray(np.where(likelier, start + 2 * self.half * place, place))


def piecewise_mechanism(epsilon: float) -> Piecewise:
    """Return the piecewise mechanism of definition 11."""
    high = math.exp(epsilon / 2)
    return Piecewise(high, 1 / high, 1 / (2 * (high + 1)))


def square_wave(epsilon: float) -> Piecewise:
    """Return the square wave mechanism of definition 12."""
    ratio = math.exp(epsilon)
    high = (ratio - 1) / epsilon
    half = (ratio * (epsilon - 1) + 1) / (2 * (ratio - 1) ** 2)
    return Piecewise(high, high / ratio, half)


class Levels(PaperLaw):
    """A law with few outputs."""

    @abstractmethod
    def table(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs (n, k), rising in each row, and their probabilities."""

    def law(self, x: FloatArray) -> base.Law:
        """Return the laws for values (n,), as atoms."""
        return base.atomic_law(*self.table(x))

    def draw(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return one draw for each value."""
        values, which = np.unique(x, return_inverse=True)
        outputs, masses = self.table(values)
        # The rows one after the other, row i from i to i + 1: one search for all.
        sums = np.arange(len(values))[:, None] + np.cumsum(masses, axis=1)
        sums[:, -1] = np.arange(len(values)) + 1
        positions = np.searchsorted(sums.ravel(), which + rng.random(x.shape), "right")
        return np.asarray(outputs.ravel()[positions])


@dataclass(frozen=True)
class Exponential(Levels):
    """Weights e^(-rate |x - y|) on ``size`` levels y = 0, .01, ...; x is not rounded.

    Definition 13 with its sign put right has rate epsilon/2 and spends half of epsilon;
    rate epsilon spends all of it.
    """

    rate: float
    size: int = 100

    def table(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the levels, and their weights over their sum."""
        levels = np.arange(self.size) / 100
        weights = np.exp(-self.rate * np.abs(x[:, None] - levels))
        masses = weights / weights.sum(axis=1, keepdims=True)
        return np.broadcast_to(levels, masses.shape), masses


@dataclass(frozen=True)
class KeptRR(Levels):
    """Random response that keeps the value or names another level.

    With probability e^epsilon/(``other_levels`` + e^epsilon). Definition 14 has 100
    others, the curves are drawn with 99. What is kept need not be a level: such an
    output gives the value away, so this is not private.
    """

    epsilon: float
    other_levels: int = 99

    def table(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the value and the levels in order; its own level has mass 0."""
        levels = np.arange(101) / 100
        other = np.abs(x[:, None] - levels) > _SAME
        keep = 1 / (1 + self.other_levels * math.exp(-self.epsilon))
        moved = other * (1 - keep) / other.sum(axis=1, keepdims=True)
        outputs = np.hstack([np.broadcast_to(levels, other.shape), x[:, None]])
        masses = np.hstack([moved, np.full((len(x), 1), keep)])
        order = np.argsort(outputs, axis=1, kind="stable")
        return (
            np.take_along_axis(outputs, order, axis=1),
            np.take_along_axis(masses, order, axis=1),
        )


class RedrawnNoise(PaperLaw):
    """Noise added to x, drawn again until the sum lies in [0, 1]."""

    @abstractmethod
    def noise(self, at: FloatArray) -> FloatArray:
        """Return P(noise <= at)."""

    @abstractmethod
    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the inverse of ``noise``."""

    def inside(self, x: FloatArray) -> FloatArray:
        """Return P(0 <= x + noise <= 1), of the shape of x."""
        return np.asarray(self.noise(1 - x) - self.noise(-x))

    def law(self, x: FloatArray) -> base.Law:
        """Return the laws given that the sum lies in [0, 1]."""
        return base.continuous_law(x[:, None], self._cdf, 0.0, 1.0)

    def _cdf(self, x: FloatArray, at: FloatArray) -> FloatArray:
        reached = self.noise(np.clip(at, 0, 1) - x) - self.noise(-x)
        return np.asarray(reached / self.inside(x))

    def draw(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return one accepted draw for each value, by the inverse law."""
        share = self.noise(-x) + rng.random(x.shape) * self.inside(x)
        return np.clip(x + self.quantile(share), 0, 1)


@dataclass(frozen=True)
class Laplace(RedrawnNoise):
    """Definition 4: scale 1/epsilon on [0, 1]."""

    epsilon: float

    def noise(self, at: FloatArray) -> FloatArray:
        """Return P(noise <= at)."""
        tail = np.exp(-self.epsilon * np.abs(at)) / 2
        return np.asarray(np.where(at < 0, tail, 1 - tail))

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the inverse of ``noise``."""
        size = -np.log(2 * np.minimum(share, 1 - share)) / self.epsilon
        return np.asarray(np.where(share < 0.5, -size, size))


@dataclass(frozen=True)
class Gaussian(RedrawnNoise):
    """Theorem 4: the extended Gaussian, ``delta`` for one feature."""

    epsilon: float
    delta: float = DELTA

    @property
    def sigma(self) -> float:
        """The noise's standard deviation."""
        log = math.log(2 / self.delta)
        root = math.sqrt(log + self.epsilon) + math.sqrt(log)
        return root / (math.sqrt(2) * self.epsilon)

    def noise(self, at: FloatArray) -> FloatArray:
        """Return P(noise <= at)."""
        return np.asarray(ndtr(at / self.sigma))

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the inverse of ``noise``."""
        return np.asarray(self.sigma * ndtri(share))


def paper_law(name: str, epsilon: float, *, spent: float = 1.0) -> PaperLaw:
    """Return the law with this name in the published files.

    ``spent`` is the share of epsilon that the exponential one spends.
    """
    laws: dict[str, PaperLaw] = {
        "pm_01": piecewise_mechanism(epsilon),
        "sw_01": square_wave(epsilon),
        "k_rr": KeptRR(epsilon),
        "exponential": Exponential(spent * epsilon),
        "laplace": Laplace(epsilon),
        "gaussian": Gaussian(epsilon),
    }
    return laws[name]


def paper_share(inside: FloatArray) -> FloatArray:
    """Return the share (n,) of answers as the paper counts them.

    ``inside`` (n, s): 1/(1 + sum_i (1/p_i - 1)), each feature drawn until it is kept.
    """
    return np.asarray(1 / (1 + (1 / inside - 1).sum(axis=1)))


LOOKS: Final = {
    "pm_01": Look("#0072b2", "o"),
    "sw_01": Look("#009e73", "^"),
    "k_rr": Look("#d98c00", "s"),
    "exponential": Look("#b3346c", "D"),
    "laplace": Look("#6460c8", "v"),
    "gaussian": Look("#5c4a32", "h"),
}
MECHANISMS: Final = ("pm_01", "sw_01", "k_rr", "exponential", "laplace", "gaussian")
PARAMS: Final[dict[str, dict[str, Any]]] = {
    "k_rr": {"n_classes": 101},
    "exponential": {"size": 101},
    "gaussian": {"d": 1, "delta": DELTA},
}


@dataclass(frozen=True)
class StatedChannel(Channel):
    """A channel with a stated law instead of mechanisms; it cannot be drawn."""

    stated_law: Callable[[FloatArray], base.Mixture] = field(kw_only=True)

    def law(self, values: FloatArray) -> base.Mixture:
        """Return the stated law of what the model sees for ``values`` (n, s)."""
        return self.stated_law(values)


def paper_channel(law: PaperLaw) -> StatedChannel:
    """Return the channel that noises two features by a paper's law."""

    def mixture(values: FloatArray) -> base.Mixture:
        return base.product_law(*(law.law(column) for column in values.T))

    return StatedChannel((), BOUNDS, BOUNDS.mean(axis=1), stated_law=mixture)


def our_channel(name: str, epsilon: float, size: int = 2) -> Channel:
    """Return the channel of our mechanism, ``epsilon`` for each feature."""
    mechanism = make(name, epsilon=epsilon, **PARAMS.get(name, {}))
    bounds = np.tile(UNIT, (size, 1))
    parts = [Part(mechanism, (place,)) for place in range(size)]
    return Channel(parts, bounds, bounds.mean(axis=1))


def agreement(surface: Surface, channel: Channel) -> FloatArray:
    """Return the probability that each record's answer survives, (n,)."""
    share = surface.answers(channel, Draws()).share
    return np.asarray(share[np.arange(len(share)), surface.clean])


def printed_agreement(
    surface: Surface, values: FloatArray, law: PaperLaw, *, redraws: bool = True
) -> FloatArray:
    """Return the agreement as the paper counts it.

    ``values`` (n, 2) are the sensitive ones.
    """
    shares = agreement(surface, paper_channel(law))
    if not redraws:
        return shares
    return shares * paper_share(
        np.column_stack([law.inside(column) for column in values.T])
    )
