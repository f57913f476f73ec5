"""Check of noise for every input, not only at the ends and in the middle."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from curvote.audit.row import Finding
from curvote.validate import FloatArray

BIN = 0.01
# Inputs that code may treat in a way of their own, each tried many times; what lies
# beyond the domain is clipped, or normalised.
_TENTHS = np.concatenate([np.arange(0, 101) / 100, np.arange(1, 8) / 8])
_SMALL = np.array([1 / 3, 2.0**-10, 2.0**-20, 2.0**-21, 1e-3, 1e-6, 1e-12, 5e-324])
_BEYOND = np.array([1 + 1e-9, 1.25, 1.5, 2.0, 3.0, 7.0, 100.0, 1e6])
SPECIAL = np.unique(np.outer([-1, 1], np.concatenate([_TENTHS, _SMALL, _BEYOND])))


def test_values(shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return numbers all over [-1, 1], a third of them ``SPECIAL`` ones."""
    spread = rng.uniform(-1, 1, shape)
    chosen = SPECIAL[rng.integers(len(SPECIAL), size=shape)]
    return np.where(rng.random(shape) < 1 / 3, chosen, spread)


def value_bins(places: FloatArray) -> NDArray[np.int64]:
    """Return each value's bin; a special value has its own."""
    at = np.minimum(np.searchsorted(SPECIAL, places), len(SPECIAL) - 1)
    spread = len(SPECIAL) + np.floor((places + 1) / BIN)
    return np.where(SPECIAL[at] == places, at, spread).astype(np.int64)


def check_interior(places: FloatArray, residuals: FloatArray, alpha: float) -> Finding:
    """Compare draws with the declared law at special inputs and in bins.

    ``places`` (n, j) are inputs from everywhere, ``residuals`` (n, k) what was drawn
    for them; wrong with probability ``alpha`` at most. Where number and input belong
    together, also the residual's distance from the middle: too little noise is near it.
    """
    columns_match = places.shape[1] == residuals.shape[1]
    column_alpha = alpha / (2 * places.shape[1] * residuals.shape[1])
    pairs = product(enumerate(places.T), enumerate(residuals.T))
    for (i, column), (j, residual) in pairs:
        which = value_bins(column)
        why = uneven_bin(which, column, residual, column_alpha)
        if not why and (i == j or not columns_match):
            why = uneven_bin(which, column, np.abs(2 * residual - 1), column_alpha)
        if why:
            return Finding("interior", f"{why} (input {i}, number {j})")
    return Finding("interior")


def uneven_bin(
    which: NDArray[np.int64], places: FloatArray, residual: FloatArray, alpha: float
) -> str | None:
    """Return the bin whose residuals are not uniform, if any (DKW)."""
    order = np.lexsort((residual, which))
    ordered, u = which[order], residual[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff(np.append(starts, len(u)))
    rank = np.arange(len(u)) - np.repeat(starts, sizes)
    size = np.repeat(sizes, sizes)
    above, below = (rank + 1) / size - u, u - rank / size
    gap = np.maximum.reduceat(np.maximum(above, below), starts)
    allowed = np.sqrt(math.log(2 * len(starts) / alpha) / (2 * sizes))
    excess = np.where(np.isfinite(gap), gap - allowed, 1.0)
    worst = int(np.argmax(excess))
    if excess[worst] <= 0:
        return None
    near = places[order][starts[worst]]
    return f"for inputs near {near:.4g} the law is off by {gap[worst]:.2g}"


def uniformity_gap(residuals: FloatArray, alpha: float) -> str | None:
    """Return how far residuals (n, k) are from uniform, beyond chance.

    Or their distances from the middle, which halved noise leaves too small.
    """
    columns = [*residuals.T, *np.abs(2 * residuals - 1).T]
    gap = max(_column_gap(column, alpha / len(columns)) for column in columns)
    return f"the law is off by {gap:.2g} more than chance allows" if gap > 0 else None


def _column_gap(residual: FloatArray, alpha: float) -> float:
    u = np.sort(residual)
    rank = np.arange(len(u))
    gap = np.maximum((rank + 1) / len(u) - u, u - rank / len(u)).max(initial=0)
    return float(gap - math.sqrt(math.log(2 / alpha) / (2 * len(u))))
