"""The joint box mechanism: a record moved within a cube around it, or outside."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.mechanisms import exact
from curvote.mechanisms.base import VectorMechanism
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.grid import ONE, grid_index
from curvote.mechanisms.law import Law, Mixture, smooth
from curvote.validate import FloatArray

# Grid points of step 2^-20 on one axis, from -1 to 1.
POINTS = 2 * ONE + 1


class JointBox(VectorMechanism):
    """Answers a point of [-1, 1]^d, e^epsilon times as likely in a cube around x.

    The cube, shifted to stay inside [-1, 1]^d, has the volume share 1/(1 + e^(eps/2)),
    at which P(inside) exceeds the share itself most. Everything is on the grid of step
    2^-20: M points an axis, ``side`` of them in the cube, so side^d points are inside
    and M^d - side^d outside, told apart by an integer threshold rounded towards
    privacy. The loss is bounded for the record as a whole: a single coordinate has no
    smaller share of it. Not unbiased: the mean is the cube's middle, shrunk.
    """

    name = "joint_box"
    unbiased = False

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(epsilon=epsilon, d=d)
        share = _share(self.epsilon) ** (1 / self.d)
        # Odd, so that x is its middle; at least one point stays outside.
        self.reach = min(round((POINTS * share - 1) / 2), (POINTS - 3) // 2)
        self.side = 2 * max(self.reach, 0) + 1
        self.inside = self.side**self.d
        self.outside = POINTS**self.d - self.inside
        self.threshold = exact.logistic_threshold(
            self.epsilon, self.inside, self.outside
        )

    def _lowest(self, values: FloatArray) -> NDArray[np.int64]:
        """Return the cube's lowest corner, counted in steps."""
        corner = grid_index(values) - self.side // 2
        return np.asarray(np.clip(corner, -ONE, ONE + 1 - self.side))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        lowest = self._lowest(values)
        inside = entropy.words(len(values)) < np.uint64(self.threshold)
        steps = np.empty(values.shape, dtype=np.int64)
        near = lowest[inside]
        steps[inside] = near + _grid(self.side, near.shape, entropy)
        steps[~inside] = self._elsewhere(lowest[~inside], entropy)
        return np.asarray(steps / ONE)

    def _elsewhere(
        self, lowest: NDArray[np.int64], entropy: Entropy
    ) -> NDArray[np.int64]:
        """Return points uniform outside the cubes, by rejection from the whole grid."""
        steps, waiting = np.empty_like(lowest), np.arange(len(lowest))
        while waiting.size:
            some = _grid(POINTS, (waiting.size, self.d), entropy) - ONE
            kept = ~self._holds(lowest[waiting], some)
            steps[waiting[kept]] = some[kept]
            waiting = waiting[~kept]
        return steps

    def _holds(
        self, lowest: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Say for each record whether its cube holds the point."""
        within = (steps >= lowest) & (steps < lowest + self.side)
        return np.asarray(within.all(axis=-1))

    def possible(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each record whether it is a grid point of [-1, 1]^d."""
        steps = np.asarray(outputs, dtype=np.float64) * ONE
        on_grid = (steps == np.rint(steps)) & (np.abs(steps) <= ONE)
        return np.asarray(on_grid.all(axis=-1))

    def _middle(self, x: ArrayLike) -> FloatArray:
        clipped, _ = self.clip(x)
        return np.asarray((self._lowest(clipped) + self.side // 2) / ONE)

    @property
    def _cube_weight(self) -> float:
        """The share of the draw that is uniform in the cube; the rest is everywhere."""
        spread = Fraction(self.inside * (WORDS - self.threshold), self.outside)
        return float((self.threshold - spread) / WORDS)

    def law(self, x: ArrayLike) -> Mixture:
        """Return two terms: uniform in the cube, and uniform everywhere."""
        lowest = self._lowest(self.clip(x)[0]).astype(np.float64)
        weight = np.full((len(lowest), 1), self._cube_weight)
        near = [_uniform(column[:, None], self.side) for column in lowest.T]
        far = [_uniform(np.full((len(lowest), 1), -float(ONE)), POINTS)] * self.d
        return Mixture(np.hstack([weight, 1 - weight]), (tuple(near), tuple(far)))

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the exact mean of each coordinate, (n, d): the middle, shrunk."""
        return self._cube_weight * self._middle(x)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the exact variance of each coordinate, (n, d)."""
        weight, middle = self._cube_weight, self._middle(x)
        near, far = ((points**2 - 1) / (12 * ONE**2) for points in (self.side, POINTS))
        second = weight * (middle**2 + near) + (1 - weight) * far
        return np.asarray(second - (weight * middle) ** 2)

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        steps = grid_index(np.asarray(at, dtype=np.float64))
        held = self._holds(self._lowest(self.clip(x)[0]), steps)
        return np.asarray(held * self.worst_log_ratio())

    def worst_ratio(self) -> Fraction:
        """Return how much likelier a point inside the cube is than one outside."""
        outside = WORDS - self.threshold
        return Fraction(self.threshold * self.outside, self.inside * outside)


def _share(epsilon: float) -> float:
    """Return 1/(1 + e^(eps/2)); what underflows is 0."""
    try:
        return 1 / (1 + math.exp(epsilon / 2))
    except OverflowError:
        return 0.0


def _uniform(lowest: FloatArray, points: int) -> Law:
    """Return uniform laws on so many grid points from each lowest one, (n, 1)."""

    def cdf(lowest: FloatArray, at: FloatArray) -> FloatArray:
        below = np.floor(np.clip(at, -2, 2) * ONE) - lowest + 1
        return np.asarray(np.clip(below, 0, points) / points)

    return smooth(lowest, cdf, -1.0, 1.0)


def _grid(points: int, shape: tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
    return exact.below(points, math.prod(shape), entropy).reshape(shape)
