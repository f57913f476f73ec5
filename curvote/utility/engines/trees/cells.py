"""The classes of every record's cells, stored compactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.validate import FloatArray


@dataclass(frozen=True)
class Cells:
    """Cells of n records: on each axis their number, ``shape`` (n, s), and the cuts.

    ``cuts[j]`` holds all records' cuts of axis j one after another, ``shape - 1`` of
    each record. ``packed`` holds all records' classes: for two classes eight cells of
    the last axis a byte, each line from a new byte on; else a number a cell.
    """

    shape: NDArray[np.int64]
    cuts: Sequence[FloatArray]
    packed: NDArray[Any]
    n_classes: int

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each record's classes begin, (n + 1,)."""
        sizes = np.prod(self.shape[:, :-1], axis=1) * self._width(self.shape[:, -1])
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each record's cuts begin, (n + 1, s)."""
        ends = np.cumsum(self.shape - 1, axis=0)
        return np.vstack([np.zeros_like(ends[:1]), ends])

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.shape)

    @property
    def count(self) -> NDArray[np.int64]:
        """The number of cells of each record, (n,)."""
        return np.asarray(np.prod(self.shape, axis=1))

    def of_record(self, i: int, axis: int) -> FloatArray:
        """Return the cuts of a record on an axis."""
        return self.cuts[axis][self.starts[i, axis] : self.starts[i + 1, axis]]

    def classes(self, i: int, window: Sequence[tuple[int, int]]) -> NDArray[Any]:
        """Return the classes of a record's cells from the first up to the last of each.

        ``window`` holds (first, behind the last) of every axis.
        """
        lines = self.packed[self.offsets[i] : self.offsets[i + 1]]
        grid = lines.reshape(*self.shape[i, :-1], -1)
        *leading, (first, last) = window
        grid = grid[tuple(slice(*each) for each in leading)]
        if self.n_classes > 2:
            return grid[..., first:last]
        bits = np.unpackbits(grid[..., first // 8 : -(-last // 8)], axis=-1)
        return bits[..., first % 8 : first % 8 + last - first]

    def at(self, points: FloatArray) -> NDArray[np.int64]:
        """Return the cells in which points (n, s) lie, (n, s)."""
        found = [
            [np.searchsorted(self.of_record(i, j), x) for j, x in enumerate(point)]
            for i, point in enumerate(points)
        ]
        return np.array(found, dtype=np.int64).reshape(points.shape)

    def _width(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        return -(-cells // 8) if self.n_classes == 2 else cells


def packed(classes: NDArray[np.intp], n_classes: int) -> NDArray[Any]:
    """Return one record's classes as `Cells.packed` holds them."""
    if n_classes == 2:
        return np.packbits(classes.astype(np.uint8), axis=-1).ravel()
    return classes.astype(np.min_scalar_type(n_classes - 1)).ravel()


def bytes_of(shape: NDArray[np.int64], n_classes: int) -> int:
    """Return how many bytes the classes of such cells take."""
    if n_classes > 2:
        width = np.min_scalar_type(n_classes - 1).itemsize
        return int(np.prod(shape.astype(float), axis=-1).sum() * width)
    lines = np.prod(shape[..., :-1].astype(float), axis=-1)
    return int((lines * np.ceil(shape[..., -1] / 8)).sum())
