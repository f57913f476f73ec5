"""Dyadic grid to which scalar inputs are rounded before any noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.validate import FloatArray

GRID_BITS = 20
GRID_STEP = 2.0**-GRID_BITS
# The grid point 1, counted in steps.
GRID_ONE = 1 << GRID_BITS


def grid_index(values: FloatArray) -> NDArray[np.int64]:
    """Return the grid point of each value, counted in steps; halves go to even."""
    return np.asarray(np.rint(values * GRID_ONE).astype(np.int64))
