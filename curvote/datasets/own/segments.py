"""Irregular measurements of many clients at once: order, gaps, interpolation.

The m rows of n clients stand one client after the other; ``starts`` (n + 1,) says where
each begins and the last ends. Times need not be of the grid. No loop over clients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Segments:
    """``times`` and ``values`` (m,) of n clients; each client has at least one row."""

    starts: Integers
    times: Floats
    values: Floats

    @property
    def owners(self) -> Integers:
        """Return the client, 0 to n - 1, of each row (m,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def first_times(self) -> Floats:
        """Return each client's first time (n,)."""
        return self.times[self.starts[:-1]]

    @property
    def last_times(self) -> Floats:
        """Return each client's last time (n,)."""
        return self.times[self.starts[1:] - 1]

    def time_order(self) -> Integers | None:
        """Return the stable order by time within clients, None if ordered."""
        rising = self.times[1:] >= self.times[:-1]
        rising[self.starts[1:-1] - 1] = True
        return None if rising.all() else np.lexsort((self.times, self.owners))

    def reorder(self, order: Integers) -> Segments:
        """Return the same clients with their rows in ``time_order``."""
        return Segments(self.starts, self.times[order], self.values[order])

    def repeated_times(self) -> Integers:
        """Return the rows whose time is that of the row before, in ordered rows."""
        same = self.times[1:] == self.times[:-1]
        same[self.starts[1:-1] - 1] = False
        return np.flatnonzero(same) + 1

    def select(self, clients: Flags) -> Segments:
        """Return the clients that are true in ``clients`` (n,)."""
        if clients.all():
            return self
        lengths = np.diff(self.starts)
        rows = np.repeat(clients, lengths)
        starts = np.concatenate(([0], np.cumsum(lengths[clients])))
        return Segments(starts, self.times[rows], self.values[rows])

    def largest_gap(self, start: float, stop: float) -> Floats:
        """Return each client's longest time between neighbours (n,), 0 for one row.

        Only gaps count of which some part lies between ``start`` and ``stop``.
        """
        gaps = np.zeros(len(self.times))
        before, after = self.times[:-1], self.times[1:]
        gaps[:-1] = np.where((before < stop) & (after > start), after - before, 0.0)
        gaps[self.starts[1:] - 1] = 0.0
        return np.maximum.reduceat(gaps, self.starts[:-1])

    def interpolate(self, grid: Floats) -> Floats:
        """Return each client's values, joined by straight lines, on ``grid``: (n, T).

        ``grid`` (T,) increases. Before its first and after its last measurement a
        client's curve stays level. A measurement on a grid point is kept exactly.
        """
        n, t = len(self.starts) - 1, len(grid)
        # A row with j grid points before it is at or left of all grid points from j on:
        # counting such rows is a binary search for every client at once, in integers.
        below = np.searchsorted(grid, self.times, side="left")
        keys = self.owners * (t + 1) + below
        counts = np.bincount(keys, minlength=n * (t + 1))
        after = np.cumsum(counts).reshape(n, t + 1)[:, :t]
        left_rows = np.maximum(after - 1, self.starts[:-1, np.newaxis])
        right = np.minimum(after, self.starts[1:, np.newaxis] - 1)
        return self._interpolate_between(left_rows, right, grid)

    def _interpolate_between(
        self, left_rows: Integers, right: Integers, grid: Floats
    ) -> Floats:
        origin, width = self.times[left_rows], self.times[right] - self.times[left_rows]
        width[left_rows == right] = 1.0  # the ends: both values are the same
        share = np.clip((grid - origin) / width, 0.0, 1.0)
        low = self.values[left_rows]
        return np.asarray(low + share * (self.values[right] - low))
