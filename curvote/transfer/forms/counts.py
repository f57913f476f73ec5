"""Form `counts`: how many records of each class there are, for the majority's class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curvote.chain.settings import Strict
from curvote.transfer.forms.base import Array, ClassSums, Steps

if TYPE_CHECKING:
    from curvote.transfer.task import Task


# Steps to a record: sigma is 16 steps at least, which must not be much.
ONE = 1 << 10


class Parameters(Strict):
    """None: phi(x) is 1 whatever x is."""


class Counts(ClassSums):
    """The count of each class; replacing a record moves two of them by 1."""

    name = "counts"
    Parameters = Parameters
    decides = "prior"

    def length(self, task: Task) -> int:
        """Return the number of classes."""
        return len(task.classes)

    def unit(self, task: Task) -> float:
        """Return 2^10: so many steps is a record."""
        return float(ONE)

    def sensitivity(self, task: Task) -> float:
        """Return 2^10 sqrt 2."""
        return ONE * math.sqrt(2)

    def sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        """Return the counts, in steps."""
        return np.bincount(codes, minlength=len(task.classes)).astype(np.int64) * ONE

    def weights(self, task: Task, values: Array) -> Array:
        """Return the counts as released, (K, 1)."""
        return np.asarray(values[:, np.newaxis] / self.unit(task))

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
        """Return the only direction."""
        return np.ones((1, 1))

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return 1: rates decide alone."""
        return 1.0

    def spreads(self, task: Task) -> Array:
        """Return 1: nothing is told by it."""
        return np.ones(1)
