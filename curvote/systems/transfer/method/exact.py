"""The exact Gaussian process of paper 002, section 4.1, on a fixed public batch.

The kernel's values at q public points are a linear image of the sum of features; by the
eigenvectors of the kernel matrix they become coordinates in which one record moves no
more than its features do. Those are noised as whole numbers and taken back: the noise
at the points has the kernel matrix as covariance. Directions whose eigenvalue is
next to nothing are left out. Points that are asked later cost anew: `kernel` does not.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from curvote.base.entropy import Entropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.systems.transfer.method.forms.kernel import ROUNDING_FACTOR
from curvote.systems.transfer.method.task import Task

Array = NDArray[np.float64]
# Steps to a feature vector of norm 1.
UNIT = 1 << 20
# Eigenvalues below that part of the largest are left out.
CLIP = 1e-9
KERNELS = ("triangular", "gaussian")


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

    ``basis`` (q, k) takes coordinates to the points.
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


def release_process(
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
    cube, queries = task.cube(table[0]), task.cube(points)
    ill = task.codes(table[1]) == 1
    centre, apart = (ill.mean(), math.sqrt(2)) if p["centre"] == "own" else (0.5, 1.0)
    signed, widths = np.asarray(ill - centre), p["bandwidths"]
    batches = [QueryBatch(p["kernel"], queries, h / p["span"]) for h in widths]
    coordinates = [batch.coordinates(cube, signed) for batch in batches]
    sizes, budget = [len(part) for part in coordinates], task.cost(len(cube))
    moved = UNIT * apart * math.sqrt(len(widths))
    rounded = ROUNDING_FACTOR * math.sqrt(sum(sizes))
    noise = GaussianNoise(moved + rounded, budget.epsilon, budget.delta)
    steps = np.rint(np.concatenate(coordinates) * UNIT).astype(np.int64)
    noised = noise.add(steps, entropy or SystemEntropy()) / (UNIT * len(cube))
    parts = np.split(noised, np.cumsum(sizes)[:-1])
    values = [batch.basis @ part for batch, part in zip(batches, parts, strict=True)]
    return np.stack(values), (noise.sigma / (UNIT * len(cube))) ** 2
