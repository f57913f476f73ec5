"""What every mechanism shares: its claims, its domain and the order of its checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.validate import FloatArray

# The samplers hold epsilon as an integer of at least 11 bits from here on.
SMALLEST_EPSILON = 2.0**-20


class Mechanism(ABC):
    """A randomizer on ``[low, high]`` that is (epsilon, delta)-private for each value.

    ``0 < epsilon < inf``; below ``SMALLEST_EPSILON`` (2^-20) is a UserError.
    ``unbiased`` says that the output has the value's grid point as its mean.
    """

    name: str
    unbiased: bool
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0

    def __init__(self, *, epsilon: float) -> None:
        self.epsilon = validate.positive(epsilon=epsilon)
        self.delta = 0.0
        if self.epsilon < SMALLEST_EPSILON:
            raise UserError(
                f"epsilon is {epsilon!r} for one value; the exact samplers need at"
                f" least {SMALLEST_EPSILON:.2g} (2^-20)."
            )

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the values clipped into the domain, and how many were outside it.

        NaN or infinity is a UserError.
        """
        given = validate.finite(values=values)
        clipped = np.clip(given, self.low, self.high)
        return clipped, int(np.count_nonzero(clipped != given))

    def randomize(self, values: ArrayLike, entropy: Entropy) -> FloatArray:
        """Return one noised float64 for each value, in the same shape.

        The first axis is clients. Values are checked before a single word is drawn:
        NaN or infinity is a UserError and releases nothing; values out of the domain
        are clipped (``clip`` counts them).
        """
        clipped, _ = self.clip(values)
        return self._draw(clipped, entropy)

    @abstractmethod
    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        """Return the noised values; they are finite and inside the domain."""

    @abstractmethod
    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the exact mean of the output for each input."""

    @abstractmethod
    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the exact variance of the output for each input."""

    @abstractmethod
    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2) for outputs ``at``."""

    @abstractmethod
    def worst_log_ratio(self) -> float:
        """Return the largest ``log_ratio``, from the integers really used."""


class ScalarMechanism(Mechanism):
    """A mechanism for one real value; arrays are many values, each at full epsilon."""

    @abstractmethod
    def cdf(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the exact P(output <= at) for each input."""


class FiniteMechanism(ScalarMechanism):
    """A scalar mechanism with finitely many outputs, given by its channel.

    ``outputs`` is increasing, [k]; ``probabilities`` is the channel.
    """

    outputs: FloatArray

    @abstractmethod
    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each output, [..., k], for each input [...]."""

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of the output, from the channel."""
        return np.asarray(self.probabilities(x) @ self.outputs)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of the output, from the channel."""
        centred = self.outputs - self.mean(x)[..., None]
        return np.asarray(np.sum(self.probabilities(x) * centred**2, axis=-1))

    def cdf(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the exact P(output <= at) for each input."""
        reached = self.outputs <= np.asarray(at)[..., None]
        return np.asarray(np.sum(self.probabilities(x) * reached, axis=-1))

    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2) for ``at`` among ``outputs``."""
        hit = self.outputs == np.asarray(at)[..., None]
        first, second = (
            np.sum(self.probabilities(value) * hit, axis=-1) for value in (x, x2)
        )
        return np.asarray(np.log(first) - np.log(second))
