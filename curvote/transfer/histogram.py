"""The grid of the histogram that paper 002, section 6.1, compares with: DT-HIST.

One grid that begins at the bounds. In the paper's simulation its cells at h = 1/2 are
the regions that the Bayes rule decides by, so it is as good as that at every epsilon;
one randomly shifted grid (`Grids` with a count of 1) is not.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from curvote.transfer.binning import Grids


class Histogram(Grids):
    """A grid without a shift, on all coordinates; ``count`` is 1."""

    @cached_property
    def _axes_and_shifts(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return np.arange(self.d)[np.newaxis], np.zeros((1, self.d))
