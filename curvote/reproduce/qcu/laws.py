"""The laws of the paper on [0, 1], as it drew them: to compare, never to protect.

Shipped mechanisms stand in `curvote.mechanisms`. These differ from them on purpose.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtr, ndtri

from curvote.mechanisms.law import Law, atoms, smooth
from curvote.validate import FloatArray

DELTA: Final = 0.052  # of the Gaussian, for each feature
_SAME: Final = 1e-9  # a level that is the value itself, but for rounding


class Printed(ABC):
    """A law of the paper for values in [0, 1] of one feature; outputs are there, too.

    What falls outside is drawn again, and every time counts as a wrong answer.
    """

    @abstractmethod
    def law(self, x: FloatArray) -> Law:
        """Return the laws of what is kept, for values (n,)."""

    @abstractmethod
    def draw(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return one kept draw for each value."""

    def inside(self, x: FloatArray) -> FloatArray:
        """Return the probability (n,) that a draw is kept."""
        return np.ones(len(x))


@dataclass(frozen=True)
class Piecewise(Printed):
    """Density ``high`` within ``half`` of x, pushed into [0, 1], ``low`` elsewhere."""

    high: float
    low: float
    half: float

    def _start(self, x: FloatArray) -> FloatArray:
        return np.clip(x, self.half, 1 - self.half) - self.half

    def law(self, x: FloatArray) -> Law:
        """Return the laws for values (n,): no atoms."""
        return smooth(x[:, None], self._upto, 0.0, 1.0)

    def _upto(self, x: FloatArray, at: FloatArray) -> FloatArray:
        within = np.clip(at - self._start(x), 0, 2 * self.half)
        more = (self.high - self.low) * within
        return np.asarray(np.minimum(self.low * np.clip(at, 0, 1) + more, 1))

    def draw(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return one draw for each value."""
        start, place = self._start(x), rng.random(x.shape)
        likelier = rng.random(x.shape) < 2 * self.half * (self.high - self.low)
        return np.asarray(np.where(likelier, start + 2 * self.half * place, place))


def pm(epsilon: float) -> Piecewise:
    """Return definition 11."""
    high = math.exp(epsilon / 2)
    return Piecewise(high, 1 / high, 1 / (2 * (high + 1)))


def sw(epsilon: float) -> Piecewise:
    """Return definition 12."""
    ratio = math.exp(epsilon)
    high = (ratio - 1) / epsilon
    half = (ratio * (epsilon - 1) + 1) / (2 * (ratio - 1) ** 2)
    return Piecewise(high, high / ratio, half)


class Levels(Printed):
    """A law of few outputs."""

    @abstractmethod
    def table(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs (n, k), rising in each row, and their probabilities."""

    def law(self, x: FloatArray) -> Law:
        """Return the laws for values (n,): atoms."""
        return atoms(*self.table(x))

    def draw(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return one draw for each value."""
        values, which = np.unique(x, return_inverse=True)
        outputs, masses = self.table(values)
        # The rows one after the other, row i from i to i + 1: one search for all.
        sums = np.arange(len(values))[:, None] + np.cumsum(masses, axis=1)
        sums[:, -1] = np.arange(len(values)) + 1
        found = np.searchsorted(sums.ravel(), which + rng.random(x.shape), "right")
        return np.asarray(outputs.ravel()[found])


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
    """Keeps the value itself, else names another one of the levels 0, .01, ..., 1.

    With probability e^epsilon/(``others`` + e^epsilon). Definition 14 has 100 others,
    the curves are drawn with 99. What is kept need not be a level: such an output gives
    the value away, so this is not private.
    """

    epsilon: float
    others: int = 99

    def table(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the value and the levels in order; its own level has mass 0."""
        levels = np.arange(101) / 100
        other = np.abs(x[:, None] - levels) > _SAME
        keep = 1 / (1 + self.others * math.exp(-self.epsilon))
        moved = other * (1 - keep) / other.sum(axis=1, keepdims=True)
        outputs = np.hstack([np.broadcast_to(levels, other.shape), x[:, None]])
        masses = np.hstack([moved, np.full((len(x), 1), keep)])
        order = np.argsort(outputs, axis=1, kind="stable")
        return (
            np.take_along_axis(outputs, order, axis=1),
            np.take_along_axis(masses, order, axis=1),
        )


class Redrawn(Printed):
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

    def law(self, x: FloatArray) -> Law:
        """Return the laws given that the sum lies in [0, 1]."""
        return smooth(x[:, None], self._upto, 0.0, 1.0)

    def _upto(self, x: FloatArray, at: FloatArray) -> FloatArray:
        reached = self.noise(np.clip(at, 0, 1) - x) - self.noise(-x)
        return np.asarray(reached / self.inside(x))

    def draw(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return one kept draw for each value, by the inverse of its law."""
        share = self.noise(-x) + rng.random(x.shape) * self.inside(x)
        return np.clip(x + self.quantile(share), 0, 1)


@dataclass(frozen=True)
class Laplace(Redrawn):
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
class Gaussian(Redrawn):
    """Theorem 4: the extended Gaussian, ``delta`` for one feature."""

    epsilon: float
    delta: float = DELTA

    @property
    def sigma(self) -> float:
        """The noise's standard deviation."""
        log = math.log(2 / self.delta)
        both = math.sqrt(log + self.epsilon) + math.sqrt(log)
        return both / (math.sqrt(2) * self.epsilon)

    def noise(self, at: FloatArray) -> FloatArray:
        """Return P(noise <= at)."""
        return np.asarray(ndtr(at / self.sigma))

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the inverse of ``noise``."""
        return np.asarray(self.sigma * ndtri(share))


def printed(name: str, epsilon: float, *, spent: float = 1.0) -> Printed:
    """Return the law called ``name`` in the published files.

    ``spent`` is the share of epsilon that the exponential one spends.
    """
    made: dict[str, Printed] = {
        "pm_01": pm(epsilon),
        "sw_01": sw(epsilon),
        "k_rr": KeptRR(epsilon),
        "exponential": Exponential(spent * epsilon),
        "laplace": Laplace(epsilon),
        "gaussian": Gaussian(epsilon),
    }
    return made[name]


def counted(inside: FloatArray) -> FloatArray:
    """Return the share (n,) of answers that are not those of redrawn records.

    ``inside`` (n, s): 1/(1 + sum_i (1/p_i - 1)), each feature drawn until it is kept.
    """
    return np.asarray(1 / (1 + (1 / inside - 1).sum(axis=1)))
