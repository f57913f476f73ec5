"""The exact Gaussian process of paper 002, section 4.1, on a fixed public batch.

The kernel's values at q public points are a linear image of the sum of features; by the
eigenvectors of the kernel matrix they become coordinates in which one record moves no
more than its features do. Those are noised as whole numbers and taken back: the noise
at the points has the kernel matrix as covariance. Directions whose eigenvalue is
next to nothing are left out. Points that are asked later cost anew: `kernel` does not.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from curvote.entropy import Entropy, SystemEntropy
from curvote.errors import UserError
from curvote.mechanisms.gaussian_noise import GaussianNoise
from curvote.transfer.forms.kernel import HALVES
from curvote.transfer.task import Task

Array = NDArray[np.float64]
# Steps to a feature vector of norm 1.
ONE = 1 << 20
# Eigenvalues below that part of the largest are left out.
CLIP = 1e-9
KERNELS = ("triangular", "gaussian")


def gram(kernel: str, one: Array, other: Array, width: float) -> Array:
    """Return the kernel between points (a, d) and (b, d), (a, b), 1 at distance 0."""
    if kernel == "gaussian":
        return np.asarray(np.exp(cdist(one, other, "sqeuclidean") / (-2 * width**2)))
    near = np.ones((len(one), len(other)))
    for left, right in zip(one.T, other.T, strict=True):
        near *= np.maximum(1 - np.abs(left[:, np.newaxis] - right) / width, 0)
    return near


class Batch:
    """Public points (q, d) in [0, 1]^d, and what a kernel of ``width`` makes of them.

    ``basis`` (q, k) takes coordinates to the points.
    """

    def __init__(self, kernel: str, points: Array, width: float) -> None:
        self.kernel, self.points, self.width = kernel, points, width
        values, vectors = np.linalg.eigh(gram(kernel, points, points, width))
        kept = values > CLIP * values[-1]
        self._root, self._vectors = np.sqrt(values[kept]), vectors[:, kept]
        self.basis = self._vectors * self._root

    def coordinates(self, cube: Array, signed: Array) -> Array:
        """Return the sum of ``signed`` (n,) times the features of ``cube``, (k,)."""
        told = gram(self.kernel, self.points, cube, self.width) @ signed
        return np.asarray((self._vectors.T @ told) / self._root)


def process(
    task: Task,
    table: tuple[ArrayLike, ArrayLike],
    points: ArrayLike,
    entropy: Entropy | None = None,
) -> tuple[Array, float]:
    """Return the noised mean of (Y - c) K at ``points`` (q, d), and its variance.

    ``task`` asks one server for release `kernel`; of its parameters kernel (triangular
    or gaussian, else a UserError), span, bandwidths and centre count. ``table`` is its
    X (n, d) and y (n,). What comes back, (|H|, q), is (epsilon, delta)-private for all
    bandwidths and points together.
    """
    p = task.params
    if task.release != "kernel" or p["kernel"] not in KERNELS:
        raise UserError("an exact process takes release kernel, triangular or gaussian")
    cube, at = task.cube(table[0]), task.cube(points)
    signed = _signed(task, task.codes(table[1]))
    batches = [Batch(p["kernel"], at, width / p["span"]) for width in p["bandwidths"]]
    told = [batch.coordinates(cube, signed) for batch in batches]
    noise = _noise(task, len(cube), sum(map(len, told)))
    steps = np.rint(np.concatenate(told) * ONE).astype(np.int64)
    drawn = noise.add(steps, entropy or SystemEntropy()) / (ONE * len(cube))
    parts = np.split(drawn, np.cumsum([len(found) for found in told])[:-1])
    values = [it.basis @ part for it, part in zip(batches, parts, strict=True)]
    return np.stack(values), (noise.sigma / (ONE * len(cube))) ** 2


def _signed(task: Task, codes: NDArray[np.int64]) -> Array:
    ill = codes == 1
    return np.asarray(ill - (ill.mean() if task.params["centre"] == "own" else 0.5))


def _noise(task: Task, n: int, length: int) -> GaussianNoise:
    """Return the noise for ``length`` coordinates: no inner product is negative."""
    apart = math.sqrt(2) if task.params["centre"] == "own" else 1.0
    moved = ONE * apart * math.sqrt(len(task.params["bandwidths"]))
    budget = task.spends(n)
    rounded = HALVES * math.sqrt(length)
    return GaussianNoise(moved + rounded, budget.epsilon, budget.delta)
