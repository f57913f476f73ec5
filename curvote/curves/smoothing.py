"""Smoothing of curves at times of their own, and with gaps, onto a public grid.

Each curve is fitted by penalised least squares, as by scikit-fda's `BasisSmoother`:

    c = (Phi' Phi + lambda R)^-1 Phi' y,

with cubic B-splines at the curve's own times in Phi and the integrals of products of
their slopes in R: towards a gap's ends and beyond the last measurement a curve levels
out. Basis and penalty follow from the grid alone, so a client at home, who has NumPy
only, finds the same values as the study did. Times are a part of the record: nothing
but coefficients of the smoothed curve goes into a message.
"""

import numpy as np
from numpy.typing import NDArray

from curvote.curves.basis import (
    Array,
    bspline_functions,
    local_bsplines,
    spline_products,
)

ORDER = 4
MOST_FUNCTIONS = 32
# Lambda on a domain of length 1, as benchmarks/smoothing.py says of simulated curves:
# at worst .02 of the coefficients' size behind straight lines, up to 40 % nearer.
PENALTY = 0.01
_CLIENTS, _ROWS = 512, 1 << 18  # at once

Integers = NDArray[np.int64]


def smooth(grid: Array, starts: Integers, times: Array, values: Array) -> Array:
    """Return n curves of C channels, fitted to measurements, on ``grid``: (n, C T).

    Those of curve i, ``values`` (m, C) at ``times`` (m,), are the rows from
    ``starts[i]`` to ``starts[i + 1]``; NaN is none, and those beyond the ends of the
    grid are of no use. A channel of which none is left is NaN, and one that was
    measured on the grid, and nowhere else, is kept.
    """
    channels = []
    for column in values.T:
        there = ~np.isnan(column)
        begins = np.append(0, np.cumsum(there))[starts]
        channels.append(_smooth_channel(grid, begins, times[there], column[there]))
    return np.hstack(channels)


def _smooth_channel(
    grid: Array, starts: Integers, times: Array, values: Array
) -> Array:
    n, points = len(starts) - 1, len(grid)
    k = min(max(ORDER, points), MOST_FUNCTIONS)
    knots = np.linspace(grid[0], grid[-1], k - ORDER + 2)
    on_grid = bspline_functions(grid, knots, ORDER)
    penalty = PENALTY * (grid[-1] - grid[0]) * spline_products(knots, ORDER)[1]
    curves = np.full((n, points), np.nan)
    used = (times >= grid[0]) & (times <= grid[-1])
    owners, begin = np.repeat(np.arange(n), np.diff(starts)), 0
    while begin < n:
        # As many curves as have some rows together; one that has more comes alone.
        fitting = int(np.searchsorted(starts, starts[begin] + _ROWS, "right")) - 1
        end = min(max(fitting, begin + 1), begin + _CLIENTS, n)
        count = end - begin
        squares, moments = np.zeros(count * k * k), np.zeros(count * k)
        for row in range(starts[begin], starts[end], _ROWS):
            part = slice(row, min(row + _ROWS, starts[end]))
            inside = part.start + np.flatnonzero(used[part])
            local, phi = local_bsplines(times[inside], knots, ORDER)
            rows, weighted = (owners[inside] - begin) * k + local, phi * values[inside]
            moments += np.bincount(rows.ravel(), weighted.ravel(), count * k)
            places = (rows[:, None] * k + local[None]).ravel()
            products = (phi[:, None] * phi[None]).ravel()
            squares += np.bincount(places, products, count * k * k)
        matrices, sums = squares.reshape(count, k, k), moments.reshape(count, k, 1)
        fit = matrices.any(axis=(1, 2))
        solutions = np.linalg.solve(matrices[fit] + penalty, sums[fit])
        # One product for each: the same bits in whatever company.
        curves[begin:end][fit] = (solutions.mT @ on_grid)[:, 0]
        begin = end
    complete = np.flatnonzero(np.diff(starts) == points)
    measured = starts[complete, None] + np.arange(points)
    exact_rows = (times[measured] == grid).all(axis=1)
    curves[complete[exact_rows]] = values[measured[exact_rows]]
    return curves


def smooth_missing(grid: Array, values: Array) -> Array:
    """Return curves ``values`` (n, C T) with those smoothed that have missing points.

    Of each of C channels, one behind the other, T values belong to the grid. A channel
    without any stays missing.
    """
    channels = np.array(values).reshape(-1, len(grid))
    lacking = np.flatnonzero(np.isnan(channels).any(axis=1))
    if n := len(lacking):
        starts, measured = len(grid) * np.arange(n + 1), channels[lacking].ravel()
        channels[lacking] = smooth(grid, starts, np.tile(grid, n), measured[:, None])
    return channels.reshape(values.shape)
