"""Two-dimensional cosines (DCT-II) for images: public and orthonormal.

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


def image_side(points: int) -> int:
    """Return the side of a square image of so many pixels."""
    side = isqrt(points)
    if side < 1 or side * side != points:
        raise UserError(
            f"a record has {points} values, which make no square; the basis {COSINES}"
            " takes grey images as high as wide.",
            where=("project", "basis"),
        )
    return side


def lowest_frequencies(points: int, size: int) -> NDArray[np.int64]:
    """Return the lowest frequencies (down, across), (size, 2).

    The first is (0, 0), the mean. Equal sums begin with the most alike. More than
    pixels, or pixels that make no square, are a UserError.
    """
    side = image_side(points)
    if size > points:
        message = f"size is {size}, but an image has only {points} pixels."
        raise UserError(message, where=("project", "size"))
    down, across = np.divmod(np.arange(points), side)
    order = np.lexsort((down, np.abs(down - across), down + across))[:size]
    return np.column_stack([down[order], across[order]])


def cosine_matrix(points: int, size: int) -> Array:
    """Return the cosines on all pixels, (size, points)."""
    from scipy.fft import dct  # no client needs it

    down, across = lowest_frequencies(points, size).T
    waves = dct(np.eye(image_side(points)), norm="ortho", axis=0)
    return np.asarray((waves[down, :, None] * waves[across, None]).reshape(size, -1))


def cosine_roughness(points: int, size: int) -> Array:
    """Return the sums of products of Laplacians over all pixels.

    A cosine of frequency (i, j) is its own Laplacian but for - (pi/side)^2 (i^2 + j^2).
    """
    steep = (np.pi / image_side(points)) ** 2
    waves = (lowest_frequencies(points, size) ** 2).sum(axis=1)
    return np.diag((steep * waves) ** 2)
