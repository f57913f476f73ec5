"""Sums over trees on all cells at once, in whole numbers: no rounding but the first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.trees.table import Rule, TreeTable

# Sums that are not whole fit 2^52 units, so that the model's own floats hold them too.
MANTISSA_BITS = 52

WholeNumbers = NDArray[np.signedinteger]


@dataclass(frozen=True)
class Units:
    """Leaves' values as whole numbers of a unit, (N, C), and the sums' start.

    In the smallest integers that hold every sum. ``slack`` units are the most by which
    a difference of sums can stray from the model's own; 0 where neither rounds.
    """

    value: WholeNumbers
    start: WholeNumbers
    slack: int


def whole_units(table: TreeTable) -> Units:
    """Return the leaves' values in units of 1 if they are whole, else of a power of 2.

    Each of T values and the start strays by at most half a unit. The model adds T
    floats of a sum below 2^52 units: each addition strays by less than half a unit.
    Twice that for a difference of two sums, and as much again for what the model
    computes of them (shares, rates).
    """
    largest = max(table.largest_sum(), 2.0**-900)
    for unit in (1.0, 2.0 ** (MANTISSA_BITS - np.ceil(np.log2(largest)))):
        scaled = table.nodes.value * unit, table.start * unit
        rounded = [np.rint(numbers) for numbers in scaled]
        integral = all((a == b).all() for a, b in zip(scaled, rounded, strict=True))
        exact = integral and not table.rounded
        if exact and largest * unit < 2.0**MANTISSA_BITS:
            break
    kind = np.min_scalar_type(-int(2 * largest * unit))
    slack = 0 if exact else 8 * (len(table.roots) + 1)
    return Units(rounded[0].astype(kind), rounded[1].astype(kind), slack)


def cell_sums(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    value: WholeNumbers,
    start: WholeNumbers,
    shape: tuple[int, ...],
) -> WholeNumbers:
    """Return the C sums of each cell, (C, *shape), of boxes (s, L) worth (L, C).

    A box adds its value at its first corner and takes it back behind its ends: running
    sums along each axis spread it. Whole numbers may overflow on the way; what comes
    out is exact.
    """
    wide = tuple(m + 1 for m in shape)
    corners = np.zeros((len(start), int(np.prod(wide))), dtype=value.dtype)
    corners[:, 0] = start
    for sides in product((False, True), repeat=len(shape)):
        at = np.ravel_multi_index(
            [np.where(side, high[j], low[j]) for j, side in enumerate(sides)], wide
        )
        for c, total in enumerate(corners):
            np.add.at(total, at, -value[:, c] if sum(sides) % 2 else value[:, c])
    spread = corners.reshape(len(start), *wide)
    for axis in range(1, spread.ndim):
        np.cumsum(spread, axis=axis, dtype=spread.dtype, out=spread)
    return spread[(slice(None), *[slice(-1)] * len(shape))]


def cell_classes(
    total: WholeNumbers, rule: Rule, slack: int
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.bool_]]:
    """Return each cell's class, and where a tie is too near to be sure."""
    if rule == "largest":
        return _largest_sum(total, slack)
    margin = total[0]
    second = margin > 0 if rule == "positive" else margin >= 0
    near = np.abs(margin) <= slack if slack else np.zeros_like(second)
    return second.view(np.uint8), near


def _largest_sum(
    total: WholeNumbers, slack: int
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.bool_]]:
    """Return the class of the largest sum, and where a tie is near."""
    first = np.argmax(total, axis=0).astype(np.min_scalar_type(len(total) - 1))
    if not slack:
        return first, np.zeros(first.shape, dtype=bool)
    ordered = np.partition(total, len(total) - 2, axis=0)
    return first, ordered[-1] - ordered[-2] <= slack
