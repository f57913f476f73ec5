"""The histogram classifier under local privacy (Berrett & Butucea 2019): a baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.classifier import sign
from curvote.errors import UserError
from curvote.mechanisms.grid import STEP
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.laplace_sum import sum_of_noise

FloatArray = NDArray[np.float64]

MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class Histogram:
    """[-1, 1]^d in cells, ``bins`` (1/h) equal intervals an axis; each cell elects.

    A client with (z, y), y in -1/+1, releases for every cell y 1{z in cell} plus noise
    (Berrett & Butucea 2019); a point is classified by the sign of its cell's
    sum over all clients, 0 as -1.

    The noise is that of the ``laplace`` mechanism with the whole ``epsilon``, scale
    2/epsilon, in every one of the bins^d coordinates, and the vector is epsilon-LDP all
    the same: cells are disjoint, so a record fills one coordinate, with +1 or -1. Any
    two records therefore differ by 1 in two coordinates, by 2 in one, or not at all:
    by 2 at most in L1. A coordinate's noise has P(k) proportional to exp(-|k| r), r at
    most epsilon/2 for each unit; the draws are independent, so the log-ratio of any
    output is at most r times the L1 distance: epsilon.

    ``published`` multiplies the scale by 2^(d+1): MRMA's section 7 states 2^(d+1)/
    epsilon for what changes by 1, and its tables show twice that. This needs less.
    More than 2^20 cells are a UserError, as is an epsilon that `Laplace` refuses.
    """

    d: int
    bins: int
    epsilon: float
    published: bool = False
    mechanism: Laplace = field(init=False)

    def __post_init__(self) -> None:
        d, bins = validate.at_least(1, d=self.d), validate.at_least(1, bins=self.bins)
        if bins**d > MOST_CELLS:
            raise UserError(
                f"With {bins} bins on each of {d} axes each client would send"
                f" {bins}^{d} numbers, about 10^{d * math.log10(bins):.1f}; the most is"
                f" {MOST_CELLS}. Take fewer bins or a smaller basis."
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
        labels: FloatArray,
        points: ArrayLike,
        generator: np.random.Generator,
    ) -> FloatArray:
        """Return -1/+1 [m] for ``points`` [m, d], from ``z`` [n, d] and ``labels`` [n].

        A study's shortcut with the releases' exact law: noise is drawn as sums, and for
        the cells that some point meets; the others cannot matter.
        """
        own = self.cells(z)
        met, place = np.unique(self.cells(points), return_inverse=True)
        total = np.bincount(own, weights=labels, minlength=self.bins**self.d)[met]
        noise = sum_of_noise(len(own), self.mechanism.noise, len(met), generator)
        return sign(total + noise * STEP)[place]
