"""Joint box mechanism: a record moved within a cube around it, or outside."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.entropy import Entropy
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact
from curvote.mechanisms.base import Law, Mixture, VectorMechanism, continuous_law
from curvote.mechanisms.exact import GRID_ONE, WORDS, Bits, grid_index

# Grid points of step 2^-20 on one axis, from -1 to 1.
POINTS = 2 * GRID_ONE + 1
Steps = NDArray[np.int64]  # places on the grid


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
        share = _volume_share(self.epsilon) ** (1 / self.d)
        # Odd, so that x is its middle; at least one point stays outside.
        self.reach = min(round((POINTS * share - 1) / 2), (POINTS - 3) // 2)
        self.side = 2 * max(self.reach, 0) + 1
        self.inside = self.side**self.d
        self.outside = POINTS**self.d - self.inside
        counts = self.inside, self.outside
        self.threshold = exact.logistic_threshold(self.epsilon, *counts)

    def _cube_corner(self, values: FloatArray) -> Steps:
        """Return the cube's lowest corner, counted in steps."""
        corner = grid_index(values) - self.side // 2
        return np.asarray(np.clip(corner, -GRID_ONE, GRID_ONE + 1 - self.side))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        lowest = self._cube_corner(values)
        inside = entropy.words(len(values)) < np.uint64(self.threshold)
        steps = np.empty(values.shape, dtype=np.int64)
        near = lowest[inside]
        steps[inside] = near + _uniform_points(self.side, near.shape, entropy)
        # Points uniform outside the cubes, by rejection.
        waiting = np.flatnonzero(~inside)
        while waiting.size:
            shape = waiting.size, self.d
            candidates = _uniform_points(POINTS, shape, entropy) - GRID_ONE
            accepted = ~self._is_inside(lowest[waiting], candidates)
            steps[waiting[accepted]] = candidates[accepted]
            waiting = waiting[~accepted]
        return np.asarray(steps / GRID_ONE)

    def _is_inside(self, lowest: Steps, steps: Steps) -> Bits:
        within = (steps >= lowest) & (steps < lowest + self.side)
        return np.asarray(within.all(axis=-1))

    def possible_mask(self, outputs: NDArray[Any]) -> Bits:
        """Return for each record whether it is a grid point of [-1, 1]^d."""
        steps = np.asarray(outputs, dtype=np.float64) * GRID_ONE
        on_grid = (steps == np.rint(steps)) & (np.abs(steps) <= GRID_ONE)
        return np.asarray(on_grid.all(axis=-1))

    def _cube_middle(self, x: ArrayLike) -> FloatArray:
        clipped, _ = self.clip(x)
        return np.asarray((self._cube_corner(clipped) + self.side // 2) / GRID_ONE)

    @property
    def _cube_weight(self) -> float:
        """The mixture weight of the uniform law in the cube."""
        spread = Fraction(self.inside * (WORDS - self.threshold), self.outside)
        return float((self.threshold - spread) / WORDS)

    def law(self, x: ArrayLike) -> Mixture:
        """Return two terms: uniform in the cube, and uniform everywhere."""
        lowest = self._cube_corner(self.clip(x)[0]).astype(np.float64)
        weight = np.full((len(lowest), 1), self._cube_weight)
        near = [_uniform_law(column[:, None], self.side) for column in lowest.T]
        start = np.full((len(lowest), 1), -float(GRID_ONE))
        far = (_uniform_law(start, POINTS),) * self.d
        return Mixture(np.hstack([weight, 1 - weight]), (tuple(near), far))

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the exact mean of each coordinate, (n, d): the middle, shrunk."""
        return self._cube_weight * self._cube_middle(x)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the exact variance of each coordinate, (n, d)."""
        weight, middle = self._cube_weight, self._cube_middle(x)
        near, far = (
            (points**2 - 1) / (12 * GRID_ONE**2) for points in (self.side, POINTS)
        )
        second = weight * (middle**2 + near) + (1 - weight) * far
        return np.asarray(second - (weight * middle) ** 2)

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        steps = grid_index(np.asarray(at, dtype=np.float64))
        inside = self._is_inside(self._cube_corner(self.clip(x)[0]), steps)
        return np.asarray(inside * self.worst_log_ratio())

    def worst_ratio(self) -> Fraction:
        """Return the exact likelihood ratio of a point inside to one outside."""
        outside = WORDS - self.threshold
        return Fraction(self.threshold * self.outside, self.inside * outside)


def _volume_share(epsilon: float) -> float:
    """Return the cube's share of the volume, 1/(1 + e^(eps/2))."""
    try:
        return 1 / (1 + math.exp(epsilon / 2))
    except OverflowError:
        return 0.0


def _uniform_law(lowest: FloatArray, points: int) -> Law:
    """Return uniform laws on grid points from each lowest one, (n, 1)."""

    def cdf(lowest: FloatArray, at: FloatArray) -> FloatArray:
        below = np.floor(np.clip(at, -2, 2) * GRID_ONE) - lowest + 1
        return np.asarray(np.clip(below, 0, points) / points)

    return continuous_law(lowest, cdf, -1.0, 1.0)


def _uniform_points(points: int, shape: tuple[int, ...], entropy: Entropy) -> Steps:
    return exact.uniform_below(points, math.prod(shape), entropy).reshape(shape)
