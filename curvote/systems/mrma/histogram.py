"""The histogram classifier under local privacy (Berrett & Butucea 2019): a baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.classes import class_indices
from curvote.base.errors import UserError
from curvote.mechanisms.exact import GRID_STEP
from curvote.mechanisms.laplace import Laplace, draw_noise_sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_CELLS = 1 << 20


@dataclass(frozen=True)
class Histogram:
    """[-1, 1]^d in cells, ``bins`` (1/h) equal intervals an axis; each cell elects.

    A client with (z, y), y the place of one of two classes, releases for every cell
    +1 or -1, as y says, where z is in the cell, else 0, plus noise (Berrett & Butucea
    2019); a point is classified by the sign of its cell's sum over all clients, 0 as
    the first class. Of more classes it releases 1{z in cell, y = k} plus noise for
    every cell and class, and the class of the largest sum wins, the first of ties.

    The noise is that of the ``laplace`` mechanism with the whole ``epsilon``, scale
    2/epsilon, in every one of the coordinates, and the vector is epsilon-LDP all the
    same: cells are disjoint, so a record fills one coordinate, with +1 or -1. Any two
    records therefore differ by 1 in two coordinates, by 2 in one, or not at all: by 2
    at most in L1, for any number of classes. A coordinate's noise has P(k)
    proportional to exp(-|k| r), r at most epsilon/2 for each unit; the draws are
    independent, so the log-ratio of any output is at most r times the L1 distance:
    epsilon.

    ``published`` multiplies the scale by 2^(d+1): MRMA's section 7 states 2^(d+1)/
    epsilon for what changes by 1, and its tables show twice that. This needs less.
    More than 2^20 numbers are a UserError, as is an epsilon that `Laplace` refuses.
    """

    d: int
    bins: int
    epsilon: float
    published: bool = False
    n_classes: int = 2
    mechanism: Laplace = field(init=False)

    def __post_init__(self) -> None:
        d, bins = validate.at_least(1, d=self.d), validate.at_least(1, bins=self.bins)
        number_count = len(self._class_codes)
        if number_count * bins**d > MAX_CELLS:
            size = math.log10(number_count) + d * math.log10(bins)
            words = f"{number_count} x " * (number_count > 1) + f"{bins}^{d}"
            raise UserError(
                f"With {bins} bins on each of {d} axes each client would send"
                f" {words} numbers, about 10^{size:.1f}; the most is"
                f" {MAX_CELLS}. Take fewer bins or a smaller basis."
            )
        excess = 2.0 ** (d + 1) if self.published else 1.0
        object.__setattr__(self, "mechanism", Laplace(epsilon=self.epsilon / excess))

    def cells(self, z: ArrayLike) -> NDArray[np.int64]:
        """Return the number of each point's cell, [n], for ``z`` [n, d].

        An inner edge belongs to the interval above it, and what lies outside [-1, 1],
        or on its ends, to the nearest one. Other shapes are a UserError.
        """
        points = validate.finite(z=z)
        if points.ndim != 2 or points.shape[1] != self.d:
            raise UserError(f"z has shape {points.shape}; it must be [n, {self.d}].")
        place = np.floor((np.clip(points, -1, 1) + 1) * (self.bins / 2))
        axes = np.minimum(place, self.bins - 1).astype(np.int64)
        return np.asarray(axes @ self.bins ** np.arange(self.d))

    def classify(
        self,
        z: ArrayLike,
        labels: IntArray,
        points: ArrayLike,
        generator: np.random.Generator,
    ) -> IntArray:
        """Return places [m] for ``points`` [m, d], from ``z`` [n, d], ``labels`` [n].

        Labels are places of classes; others are a UserError. A study's shortcut with
        the releases' exact law: noise is drawn as sums, and for the cells that some
        point meets; the others cannot matter.
        """
        cell_numbers = self.cells(z)
        filled = self._class_codes[:, class_indices(labels, self.n_classes)]
        met_cells, point_cell = np.unique(self.cells(points), return_inverse=True)
        size = self.bins**self.d
        total = [
            np.bincount(cell_numbers, weights=w, minlength=size)[met_cells]
            for w in filled
        ]
        law, n = self.mechanism.noise, len(cell_numbers)
        noise = [draw_noise_sums(n, law, len(met_cells), generator) for _ in filled]
        sums = np.array(total) + np.array(noise) * GRID_STEP
        winners = sums[0] > 0 if len(sums) == 1 else sums.argmax(axis=0)
        return np.asarray(winners[point_cell], dtype=np.int64)

    @property
    def _class_codes(self) -> FloatArray:
        """Numbers that each class puts into a record's cell, a row a number."""
        if self.n_classes == 2:
            return np.array([[-1.0, 1.0]])
        return np.eye(self.n_classes)
