"""Two-dimensional cosines (DCT-II) for images: orthonormal, public, free of any data.

Ahmed, Natarajan, Rao (1974), Discrete cosine transform; the order of frequencies (i, j)
is that of their sum, along the diagonals of a zig-zag.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError

Array = NDArray[np.float64]

COSINES = "cosines"


def side_of(points: int) -> int:
    """Return the height of an image of so many pixels; UserError: it is no square."""
    side = isqrt(points)
    if side < 1 or side * side != points:
        raise UserError(
            f"a record has {points} values, which make no square; the basis {COSINES}"
            " takes grey images as high as wide.",
            where=("project", "basis"),
        )
    return side


def frequencies(points: int, size: int) -> NDArray[np.int64]:
    """Return the lowest frequencies (down, across) of a square image, (size, 2).

    The first is (0, 0), the mean. Equal sums begin with the most alike. More than
    pixels, or pixels that make no square, are a UserError.
    """
    side = side_of(points)
    if size > points:
        message = f"size is {size}, but an image has only {points} pixels."
        raise UserError(message, where=("project", "size"))
    down, across = np.divmod(np.arange(points), side)
    order = np.lexsort((down, np.abs(down - across), down + across))[:size]
    return np.column_stack([down[order], across[order]])


def matrix(points: int, size: int) -> Array:
    """Return the cosines on the pixels, row by row of an image, (size, points)."""
    from scipy.fft import dct  # no client needs it

    down, across = frequencies(points, size).T
    waves = dct(np.eye(side_of(points)), norm="ortho", axis=0)
    return np.asarray((waves[down, :, None] * waves[across, None]).reshape(size, -1))


def roughness(points: int, size: int) -> Array:
    """Return the sums of products of Laplacians over all pixels, (size, size).

    A cosine of frequency (i, j) is its own Laplacian but for - (pi/side)^2 (i^2 + j^2).
    """
    steep = (np.pi / side_of(points)) ** 2
    waves = (frequencies(points, size) ** 2).sum(axis=1)
    return np.diag((steep * waves) ** 2)
