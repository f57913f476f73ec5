"""Form `counts`: how many records of each class there are, for the majority's class."""

from __future__ import annotations

import math

import numpy as np

from curvote.chain.settings import Strict
from curvote.systems.transfer.method.task import Array, ClassSums, Steps, Task

# Steps of one record: exact noise needs many of them, as its sigma is 16 or more.
UNIT = 1 << 10


class Parameters(Strict):
    """None: phi(x) is 1 whatever x is."""


class Counts(ClassSums):
    """The count of each class; replacing a record moves two of them by `ONE` steps."""

    name = "counts"
    Parameters = Parameters
    decides = "prior"

    def length(self, task: Task) -> int:
        """Return the number of classes."""
        return len(task.classes)

    def unit(self, task: Task) -> float:
        """Return `ONE`, the steps of one record."""
        return float(UNIT)

    def sensitivity(self, task: Task) -> float:
        """Return sqrt 2, in steps."""
        return math.sqrt(2) * UNIT

    def sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        """Return the counts in steps."""
        return UNIT * np.bincount(codes, minlength=len(task.classes)).astype(np.int64)

    def weights(self, task: Task, values: Array) -> Array:
        """Return the counts as released, (K, 1)."""
        return np.asarray(values[:, np.newaxis] / UNIT, dtype=np.float64)

    def product(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return w for every query, (q, r)."""
        return np.repeat(weights.T, len(cube), axis=0)

    def reference(self, task: Task, weights: Array) -> Array:
        """Return w, (r,)."""
        return np.asarray(weights[:, 0])

    def constant(self, task: Task) -> Array:
        """Return the weight of the function 1."""
        return np.ones(1)

    def main(self, task: Task) -> Array:
        """Return the only direction, (1, 1)."""
        return np.ones((1, 1))

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return 1: class rates decide alone."""
        return 1.0

    def direction_variances(self, task: Task) -> Array:
        """Return variance 1 for the one direction."""
        return np.ones(1)
