"""Random waves: public features whose inner products are a Gaussian kernel.

With frequencies w of the law N(0, I / width^2) the pairs cos(w.x), sin(w.x) over the
root of their count have norm exactly 1, and exp(-|x - y|^2 / (2 width^2)) as expected
inner product (Rahimi & Recht 2007). A drawn inner product may be negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_WAVE_BLOCK = 1 << 22  # numbers that are held at once


@dataclass(frozen=True)
class Waves:
    """``count`` frequencies of a Gaussian kernel of ``width`` on [0, 1]^d."""

    d: int
    count: int
    width: float
    seed: int

    @cached_property
    def _frequencies(self) -> Array:
        """Random frequencies of the kernel, (d, count)."""
        rng = np.random.default_rng([self.seed, self.d, self.count])
        return rng.standard_normal((self.d, self.count)) / self.width

    @property
    def length(self) -> int:
        """Number of features: two of each frequency."""
        return 2 * self.count

    def _features(self, cube: Array) -> Array:
        """Return the features of norm sqrt(count), (n, length)."""
        angle = cube @ self._frequencies
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)

    def _blocks(self, cube: Array) -> list[Array]:
        """Return the points in blocks of bounded size."""
        parts = max(1, math.ceil(len(cube) * self.length / _WAVE_BLOCK))
        return list(np.array_split(cube, parts))

    def counts(self, cube: Array) -> Array:
        """Return the sum of the points' features, (length,)."""
        sums = [self._features(part).sum(axis=0) for part in self._blocks(cube)]
        return np.asarray(np.sum(sums, axis=0))

    def product(self, cube: Array, weights: Array) -> Array:
        """Return phi(x) . w, |phi| = 1, for points (q, d) and rows (r, length)."""
        products = [self._features(part) @ weights.T for part in self._blocks(cube)]
        return np.asarray(np.concatenate(products) / math.sqrt(self.count))
