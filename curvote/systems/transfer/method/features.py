"""Public features of kernel releases: random grids, a histogram grid, random waves.

A grid of pitch h has a random shift; two points share its cell with the probability
prod (1 - |x_i - y_i| / h)+ over the coordinates that it is about (Rahimi & Recht 2007,
random binning). With P grids the features are 1/sqrt(P) at the cell of each grid: their
norm is exactly 1, and the inner product is that kernel in expectation.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Array = NDArray[np.float64]
Steps = NDArray[np.int64]
# Odd constants of SplitMix64 (Steele, Lea & Flood 2014): a public hash of cells.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
# How many points tell the principal directions, and how many of these are kept.
_SPREAD, _MAIN = 256, 16
# Cells that are looked up at once: what a processor's own memory holds.
_GRID_BLOCK = 1 << 17


@dataclass(frozen=True)
class Grids:
    """Random grids: ``count`` of them, of ``pitch``, each on ``order`` coordinates.

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
    def _axes_and_shifts(self) -> tuple[Steps, Array]:
        """Coordinates (P, order) and shifts, in pitches, of each grid."""
        rng = np.random.default_rng([self.seed, self.d, self.order])
        on = rng.random((self.count, self.d)).argsort(axis=1)[:, : self.order]
        return np.sort(on, axis=1), rng.random(on.shape)

    @property
    def side(self) -> int:
        """Number of cells of a grid along one coordinate."""
        return math.ceil(1 / self.pitch) + 1

    @property
    def cells(self) -> int:
        """Number of distinct cells of one grid."""
        return int(min(self.side**self.order, self.buckets))

    @property
    def length(self) -> int:
        """Number of cells of all grids."""
        return self.count * self.cells

    def places(self, cube: Array) -> Steps:
        """Return the cell of each point (n, d) in each grid, (n, P), 0..length-1."""
        return np.concatenate([part.T for part in self._cell_blocks(cube)])

    def counts(self, cube: Array) -> Steps:
        """Return the number of points in each cell, (length,)."""
        total = np.zeros(self.length, dtype=np.int64)
        for part in self._cell_blocks(cube):
            total += np.bincount(part.ravel(), minlength=self.length)
        return total

    def product(self, cube: Array, weights: Array) -> Array:
        """Return phi(x) . w for points (q, d) and rows (r, length): (q, r)."""
        products = [
            np.stack([row.take(part).sum(axis=0) for row in weights], axis=1)
            for part in self._cell_blocks(cube)
        ]
        return np.asarray(np.concatenate(products) / math.sqrt(self.count))

    def _cell_blocks(self, cube: Array) -> Iterator[Steps]:
        """Yield the cells (P, block) of the points, block by block, in order."""
        on, shift = self._axes_and_shifts
        step = max(1, _GRID_BLOCK // self.count)
        first = np.arange(self.count)[:, np.newaxis] * self.cells
        for start in range(0, max(1, len(cube)), step):
            axes = np.ascontiguousarray(cube[start : start + step].T) / self.pitch
            code = np.zeros((self.count, axes.shape[1]), dtype=np.int64)
            for axis in range(self.order):
                along = axes[on[:, axis]]
                along += shift[:, axis, np.newaxis]
                code *= self.side
                code += np.minimum(along.astype(np.int64), self.side - 1)
            if self.side**self.order > self.buckets:
                grid = np.arange(1, self.count + 1, dtype=np.uint64)[:, np.newaxis]
                mixed = code.astype(np.uint64) + grid * _GOLDEN
                for turn, factor in zip((30, 27), _MIX, strict=True):
                    mixed = (mixed ^ (mixed >> np.uint64(turn))) * factor
                mixed ^= mixed >> np.uint64(31)
                code = (mixed % np.uint64(self.buckets)).astype(np.int64)
            yield code + first


@lru_cache(maxsize=64)
def principal_directions(grids: Grids) -> tuple[Array, Array]:
    """Return the principal directions (length, k) of phi, and their variances."""
    points = np.random.default_rng(grids.seed).random((_SPREAD, grids.d))
    phi = np.zeros((_SPREAD, grids.length))
    np.put_along_axis(phi, grids.places(points), 1.0, axis=1)
    phi = (phi - phi.mean(axis=0)) / math.sqrt(grids.count)
    values, vectors = np.linalg.eigh(phi @ phi.T)
    main = phi.T @ vectors[:, -_MAIN:]
    return main / np.sqrt(values[-_MAIN:]), values[-_MAIN:] / _SPREAD


class Histogram(Grids):
    """A grid without a shift, on all coordinates; ``count`` is 1."""

    @cached_property
    def _axes_and_shifts(self) -> tuple[Steps, Array]:
        return np.arange(self.d)[np.newaxis], np.zeros((1, self.d))


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


# Eigenvalues below that part of the largest are left out.
CLIP = 1e-9


def kernel_matrix(kernel: str, first: Array, second: Array, width: float) -> Array:
    """Return the kernel matrix (a, b) of points (a, d) and (b, d); 1 at distance 0."""
    if kernel == "gaussian":
        return np.asarray(np.exp(cdist(first, second, "sqeuclidean") / (-2 * width**2)))
    near = np.ones((len(first), len(second)))
    for a, b in zip(first.T, second.T, strict=True):
        near *= np.maximum(1 - np.abs(a[:, np.newaxis] - b) / width, 0)
    return near


class QueryBatch:
    """Public query points (q, d) in [0, 1]^d with coordinates of their kernel.

    The exact Gaussian process of paper 002, section 4.1: the kernel's values at the
    points are a linear image of the sum of features, and by the eigenvectors of the
    kernel matrix coordinates in which one record moves no more than its features do.
    ``basis`` (q, k) takes coordinates to the points; noise on them has the kernel
    matrix as covariance there. Directions whose eigenvalue is next to nothing are left
    out. Points that are asked later cost anew: release `kernel` does not.
    """

    def __init__(self, kernel: str, points: Array, width: float) -> None:
        self.kernel, self.points, self.width = kernel, points, width
        values, vectors = np.linalg.eigh(kernel_matrix(kernel, points, points, width))
        usable = values > CLIP * values[-1]
        self._root, self._vectors = np.sqrt(values[usable]), vectors[:, usable]
        self.basis = self._vectors * self._root

    def coordinates(self, cube: Array, signed: Array) -> Array:
        """Return the sum of ``signed`` (n,) times the features of ``cube``, (k,)."""
        at_points = kernel_matrix(self.kernel, self.points, cube, self.width) @ signed
        return np.asarray((self._vectors.T @ at_points) / self._root)
