"""Classifier from public features and one noised code of each label."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from curvote.validate import FloatArray

ACCURACY, BALANCED = "accuracy", "balanced"
DECISIONS = (ACCURACY, BALANCED)
# Sums of the same numbers in another order differ by less.
_EQUAL = 1e-9
# A class counts as no rarer than that, in parts of an even share.
_RAREST = 1e-3


def break_ties(proba: FloatArray, X: FloatArray, seed: int) -> FloatArray:
    """Return probabilities (n, K) whose rows have one largest entry each.

    Where several are, one of them is raised by 1e-9: which one is drawn from the seed
    and the record's features (n, d), so that a record gets the same class in whatever
    company (ties at random: VEC eq. 16).
    """
    result = proba.copy()
    ties = proba >= proba.max(axis=1, keepdims=True) * (1 - _EQUAL)
    for row in np.flatnonzero(ties.sum(axis=1) > 1):
        rng = np.random.default_rng([seed, crc32(X[row].tobytes())])
        place = rng.choice(np.flatnonzero(ties[row]))
        result[row, place] = result[row].max() + _EQUAL
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def class_frequencies(proba: FloatArray) -> FloatArray:
    """Return the frequency of each class, (K,), by left-out probabilities (r, K).

    A balanced decision divides by these: they know the codes only, with far less noise
    than decoded shares, and a class that the model slights is raised as much.
    """
    return np.asarray(np.maximum(proba.mean(axis=0), _RAREST / proba.shape[1]))
