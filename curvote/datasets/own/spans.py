"""Spans of columns' values within their public bounds, a block at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.datasets.own.arrow_cells import Floats, Integers


class ColumnSpans:
    """Spans and outlier counts of p columns with bounds (p,).

    ``values``, ``below`` and ``above`` (p,) count the values that are there, and those
    outside the bounds. ``least`` and ``most`` (p,) are the ends of what was met.
    """

    def __init__(self, lower: Floats, upper: Floats) -> None:
        self.lower, self.upper = lower, upper
        self.values, self.below, self.above = np.zeros((3, len(lower)), dtype=np.int64)
        self.least = np.full(len(lower), np.inf)
        self.most = np.full(len(lower), -np.inf)

    def add(self, values: Floats, absent: NDArray[np.bool_] | None = None) -> None:
        """Count a block of values (m, p) without the ``absent`` ones."""
        self.values += len(values)
        if absent is not None and absent.any():
            values = np.where(absent, np.nan, values)
            self.values -= absent.sum(axis=0)
        least = np.fmin.reduce(values, axis=0, initial=np.inf)
        most = np.fmax.reduce(values, axis=0, initial=-np.inf)
        if (least < self.lower).any():
            self.below += (values < self.lower).sum(axis=0)
        if (most > self.upper).any():
            self.above += (values > self.upper).sum(axis=0)
        self.least = np.fmin(self.least, least)
        self.most = np.fmax(self.most, most)

    @property
    def outside(self) -> Integers:
        """The number of values of each column outside its bounds, (p,)."""
        return self.below + self.above

    @property
    def constant(self) -> NDArray[np.bool_]:
        """A mask of the columns that hold one value only, (p,)."""
        return np.asarray((self.values > 0) & (self.least == self.most))

    @property
    def used(self) -> Floats:
        """The share of each column's bounds between its extreme values, (p,)."""
        low = np.clip(self.least, self.lower, self.upper)
        high = np.clip(self.most, self.lower, self.upper)
        return np.asarray(np.where(self.values > 0, high - low, 0.0)) / (
            self.upper - self.lower
        )
