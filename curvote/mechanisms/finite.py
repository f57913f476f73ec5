"""Scalar mechanisms with finitely many outputs, given by their channel."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.law import Mixture, atomic_law, product_law
from curvote.validate import FloatArray


class FiniteMechanism(ScalarMechanism):
    """A scalar mechanism with few outputs, given by its channel.

    ``outputs`` is increasing, [k]; ``probabilities`` is the channel.
    """

    outputs: FloatArray

    @abstractmethod
    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each output, [..., k], for each input [...]."""

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each output whether it is one of ``outputs``."""
        return np.isin(outputs, self.outputs)

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

    def law(self, x: ArrayLike) -> Mixture:
        """Return the outputs' laws for inputs (n,): atoms."""
        return product_law(atomic_law(self.outputs, self.probabilities(x)))

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        values, outputs = np.asarray(x), np.asarray(at)
        inputs, index = np.unique(values, return_inverse=True)
        place = np.searchsorted(self.outputs, outputs).clip(max=len(self.outputs) - 1)
        chances = self.probabilities(inputs)[index.reshape(values.shape), place]
        return np.asarray(
            np.log(np.where(self.outputs[place] == outputs, chances, 0.0))
        )
