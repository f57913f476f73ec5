"""Random grids: public features whose inner products are a triangular product kernel.

A grid of pitch h has a random shift; two points share its cell with the probability
prod (1 - |x_i - y_i| / h)+ over the coordinates that it is about (Rahimi & Recht 2007,
random binning). With P grids the features are 1/sqrt(P) at the cell of each grid: their
norm is exactly 1, and the inner product is that kernel in expectation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Steps = NDArray[np.int64]
# Odd constants of SplitMix64 (Steele, Lea & Flood 2014): a public hash of cells.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_BLOCK = 1 << 22  # cells that are looked up at once


@dataclass(frozen=True)
class Grids:
    """``count`` grids of ``pitch`` on [0, 1]^d, each on ``order`` random coordinates.

    A grid has at most ``buckets`` cells that are told apart: more are put into them by
    a public hash, each point still into one, so that norm and sign stay.
    """

    d: int
    count: int
    order: int
    pitch: float
    buckets: int
    seed: int

    @cached_property
    def _drawn(self) -> tuple[Steps, Array]:
        """The coordinates (P, order) and shifts (P, order) of each grid."""
        rng = np.random.default_rng([self.seed, self.d, self.order])
        on = rng.random((self.count, self.d)).argsort(axis=1)[:, : self.order]
        return np.sort(on, axis=1), rng.random(on.shape) * self.pitch

    @property
    def side(self) -> int:
        """How many cells of a grid there are along one coordinate."""
        return math.floor(1 / self.pitch) + 2

    @property
    def cells(self) -> int:
        """How many cells of one grid are told apart."""
        return int(min(self.side**self.order, self.buckets))

    @property
    def length(self) -> int:
        """How many cells there are in all."""
        return self.count * self.cells

    def places(self, cube: Array) -> Steps:
        """Return the cell of each point (n, d) in each grid, (n, P), 0..length-1."""
        parts = max(1, math.ceil(len(cube) * self.count / _BLOCK))
        found = [self._places(part) for part in np.array_split(cube, parts)]
        return np.concatenate(found)

    def _places(self, cube: Array) -> Steps:
        on, shift = self._drawn
        code = np.zeros((len(cube), self.count), dtype=np.uint64)
        for axis in range(self.order):
            along = (cube[:, on[:, axis]] + shift[:, axis]) / self.pitch
            code = code * np.uint64(self.side) + along.astype(np.uint64)
        if self.side**self.order > self.buckets:
            code = self._hashed(code) % np.uint64(self.buckets)
        return (code + np.arange(self.count, dtype=np.uint64) * self.cells).astype(
            np.int64
        )

    def _hashed(self, code: NDArray[np.uint64]) -> NDArray[np.uint64]:
        mixed = code + (np.arange(self.count, dtype=np.uint64) + np.uint64(1)) * _GOLDEN
        for turn, factor in zip((30, 27), _MIX, strict=True):
            mixed = (mixed ^ (mixed >> np.uint64(turn))) * factor
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))

    def counts(self, cube: Array) -> Steps:
        """Return how many of the points stand in each cell, (length,)."""
        total = np.zeros(self.length, dtype=np.int64)
        parts = max(1, math.ceil(len(cube) * self.count / _BLOCK))
        for part in np.array_split(cube, parts):
            total += np.bincount(self._places(part).ravel(), minlength=self.length)
        return total

    def product(self, cube: Array, weights: Array) -> Array:
        """Return phi(x) . w for points (q, d) and rows (r, length): (q, r)."""
        parts = max(1, math.ceil(len(cube) * self.count / _BLOCK))
        found = [
            self._summed(self._places(part), weights)
            for part in np.array_split(cube, parts)
        ]
        return np.asarray(np.concatenate(found) / math.sqrt(self.count))

    @staticmethod
    def _summed(places: Steps, weights: Array) -> Array:
        return np.stack([row[places].sum(axis=1) for row in weights], axis=1)
