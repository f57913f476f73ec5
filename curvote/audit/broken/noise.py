"""Broken twins of mechanisms: noise, thresholds, records and rare paths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvote.entropy import Entropy, SeededEntropy
from curvote.mechanisms.grid import GRID_STEP
from curvote.mechanisms.laplace import Laplace
from curvote.validate import FloatArray

ECHO_BITS = 10


class SensitivityHalved(Laplace):
    """Takes the range of [-1, 1] for 1: half the noise, twice the loss."""

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        self.noise = Laplace(epsilon=2 * epsilon).noise


class FloatLaplace(Laplace):
    """Adds floating-point noise: low bits tell where it was added (Mironov 2012)."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        rng = np.random.default_rng(int(entropy.words(1)[0]))
        return values + rng.laplace(scale=2 / self.epsilon, size=values.shape)


class NoNoise(Laplace):
    """Declares the Laplace law, and releases the value itself."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        del entropy
        return np.asarray(np.rint(values / GRID_STEP) * GRID_STEP)


class RawEcho(Laplace):
    """Releases the raw value once in 1,024 times."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        echoes = entropy.words(values.size) >> np.uint64(64 - ECHO_BITS) == 0
        noised = super()._draw(values, entropy)
        return np.where(echoes.reshape(values.shape), values, noised)


class SameSeed(Laplace):
    """Starts the same seeded stream at each call, whatever entropy it is given."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        del entropy
        return super()._draw(values, SeededEntropy(0))


class SharedNoise(Laplace):
    """Draws noise once a call and adds it to every client."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noise = super()._draw(np.zeros(1), entropy)
        return np.asarray(np.rint(values / GRID_STEP) * GRID_STEP + noise)


class RepeatedBlocks(Laplace):
    """Uses the same noise for each block of 65,536 clients."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        block = 65_536
        noise = super()._draw(np.zeros(min(block, values.size)), entropy)
        steps = np.rint(values / GRID_STEP) * GRID_STEP
        return np.asarray(steps + np.resize(noise, values.shape))


class PassesNaN(Laplace):
    """Clips without looking: a missing value is released as missing."""

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the clipped values; NaN stays NaN."""
        array: Any = np.asarray(values, dtype=np.float64)
        return np.clip(array, self.low, self.high), 0


class MissingForLarge(Laplace):
    """Loses large values: its NaN names them."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        return np.where(values > 0.75, np.nan, super()._draw(values, entropy))


class NoClipping(Laplace):
    """Trusts the input to lie in [-1, 1]."""

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the values as they are."""
        super().clip(values)
        return np.asarray(values, dtype=np.float64), 0
