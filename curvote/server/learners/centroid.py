"""Nearest centroid: the functional discriminant after a single step.

The first conjugate-gradient step points along the difference of the class means, which
is what survives noise: later steps divide by a covariance that is mostly noise.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from curvote.server.learners import cg
from curvote.server.learners.fits import Fits, FloatArray


def fit_centroid(
    reports: FloatArray, labels: FloatArray, *, gram: ArrayLike | None = None
) -> Fits:
    """Return the fit of conjugate gradients after one step."""
    return cg.fit_conjugate_gradients(reports, labels, gram=gram, steps=1)
