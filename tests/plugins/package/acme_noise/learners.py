"""A learner: the direction between the medians of both classes."""

import numpy as np

from curvote.learning.learners.registry import Fits, FloatArray, majority_label


def fit_median(reports: FloatArray, labels: FloatArray, *, shift: float = 0.0) -> Fits:
    """Return sign((m+ - m-) . z + intercept) for [B, n, d] reports, [B, n] labels."""
    coef, middle = np.zeros((len(reports), reports.shape[2])), np.zeros(len(reports))
    lone = np.abs(labels.sum(axis=1)) == labels.shape[1]
    for b in np.flatnonzero(~lone):
        sides = [np.median(reports[b, labels[b] == y], axis=0) for y in (1, -1)]
        scale = max(float(np.abs(sides).max()), 1.0)
        coef[b] = (sides[0] - sides[1]) / scale
        middle[b] = -coef[b] @ ((sides[0] + sides[1]) / 2 / scale) * scale + shift
    flat = ~np.any(coef, axis=1)
    middle[flat] = majority_label(labels)[flat]
    return Fits(coef, middle, flat, 0.0)
