"""Laws of curves with a label, and bases that are not those of their covariance.

Fixed before anything was measured on them (benchmarks/bench_size.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from curvote.advise.direct import Signal
from curvote.curves.basis import orthonormal, projection

Array = NDArray[np.float64]

FUNCTIONS, GRID = np.arange(1, 41), np.linspace(0, 1, 101)
# Deviations of the principal scores: those of Brownian motion, 1/j^2, 1/sqrt(j).
DEVIATIONS = {
    "brownian": 1 / (np.pi * (FUNCTIONS - 0.5)),
    "smooth": FUNCTIONS**-2.0,
    "rough": FUNCTIONS**-0.5,
}
_SIGNS = (-1.0) ** (FUNCTIONS + 1)
# The label's weight on each principal score of variance 1.
SLOPES = {
    "first": 1.0 * (FUNCTIONS == 1),
    "third": 1.0 * (FUNCTIONS == 3),
    "sixth": 1.0 * (FUNCTIONS == 6),
    "spread": _SIGNS * (FUNCTIONS <= 10),
    "decaying": _SIGNS / FUNCTIONS,
    "second": 1.0 * (FUNCTIONS == 2),
    "fourth": 1.0 * (FUNCTIONS == 4),
    "eighth": 1.0 * (FUNCTIONS == 8),
    "first and fifth": 1.0 * np.isin(FUNCTIONS, (1, 5)),
    "slow": _SIGNS / np.sqrt(FUNCTIONS),
}


@dataclass(frozen=True)
class Law:
    """Curves, their label, and how they become numbers.

    The best rule would err on ``best`` were classes equal, ``positive`` is the share of
    class +1. Centre and ``scale`` come from volunteers; a common scale is one number.
    """

    covariance: str
    slope: str
    basis: str
    best: float = 0.1
    positive: float = 0.5
    scale: str = "each"

    @property
    def name(self) -> str:
        shares = "equal" if self.positive == 0.5 else f"{100 * self.positive:g} %"
        common = ", common scale" if self.scale == "common" else ""
        return (
            f"{self.covariance}, slope {self.slope}, {self.basis}, best"
            f" {100 * self.best:g} %, {shares}{common}"
        )

    def functions(self) -> Array:
        """Return the principal functions on the grid, (J, T)."""
        turn = np.outer(FUNCTIONS - 0.5, np.pi * GRID)
        if self.covariance == "brownian":
            return np.asarray(np.sqrt(2) * np.sin(turn))
        return np.asarray(np.sqrt(2) * np.cos(np.outer(FUNCTIONS, np.pi * GRID)))

    def onto(self, d: int) -> Array:
        """Return what makes coefficients (d,) of principal scores of variance 1."""
        curves = DEVIATIONS[self.covariance][:, None] * self.functions()
        return np.asarray(curves @ _basis(self.basis, d).T)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Return scores (n, J) and P(y = +1) (n,)."""
        scores = rng.standard_normal((n, len(FUNCTIONS)))
        weights = SLOPES[self.slope] / np.linalg.norm(SLOPES[self.slope])
        return scores, _signal(self.best, self.positive).chance(scores @ weights)


@cache
def _basis(name: str, d: int) -> Array:
    """Return the matrix that makes coefficients of a curve; cubic splines have 4."""
    size = max(d, 4) if name == "bspline" else d
    return orthonormal(projection(name, size, GRID)).matrix


@cache
def _signal(best: float, positive: float) -> Signal:
    return Signal(best, positive)


LAWS = (
    Law("brownian", "first", "fourier"),
    Law("brownian", "third", "fourier"),
    Law("brownian", "sixth", "fourier"),
    Law("brownian", "spread", "fourier", positive=0.7),
    Law("brownian", "decaying", "bspline"),
    Law("brownian", "sixth", "bspline", best=0.25, positive=0.7),
    Law("brownian", "third", "bspline", scale="common"),
    Law("brownian", "decaying", "fourier", scale="common"),
    Law("smooth", "first", "fourier", positive=0.7),
    Law("smooth", "third", "bspline"),
    Law("smooth", "sixth", "fourier"),
    Law("smooth", "spread", "fourier"),
    Law("smooth", "decaying", "bspline", best=0.25),
    Law("rough", "first", "bspline"),
    Law("rough", "third", "fourier", positive=0.8),
    Law("rough", "sixth", "bspline"),
    Law("rough", "spread", "fourier"),
    Law("rough", "decaying", "bspline", positive=0.7),
)
UNSEEN = (
    Law("brownian", "second", "bspline"),
    Law("smooth", "fourth", "fourier"),
    Law("rough", "eighth", "fourier"),
    Law("brownian", "first and fifth", "fourier", positive=0.7),
    Law("smooth", "slow", "bspline", best=0.2),
    Law("brownian", "slow", "fourier", best=0.2),
)
