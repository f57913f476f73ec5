"""Balanced accuracy from codes: the mean over classes of ratios of two estimates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.labels.codes import Codes
from curvote.labels.decoded import unbiased
from curvote.labels.predicted import Predicted
from curvote.validate import FloatArray

Hits = NDArray[np.bool_]

# A class of a smaller share than one record in so many counts as one that nobody has.
_FEWEST = 1e-4
# Noise alone makes a difference of once its variance in the mean, and seldom of this.
_PULL = 1.5


@dataclass(frozen=True)
class _Recalls:
    """Of the classes held, (K,) or (held,): shares as decoded and as divided by.

    ``kept`` is what of the decoded shares' noise is left in those divided by, ``n`` the
    number of codes.
    """

    held: Hits
    decoded: FloatArray
    share: FloatArray
    recall: FloatArray
    kept: float
    n: int

    def moves(self, hits: Hits, part: FloatArray) -> FloatArray:
        """Return how each record moves the recalls of the classes held (m, held).

        To the first order; and the mean of its second order, which is what the ratio
        of two estimates is off, over n.
        """
        own, right = part[:, self.held], (part * hits)[:, self.held]
        moved = self.kept * (own - self.decoded) / self.share
        first = right / self.share - self.recall - self.recall * moved
        return np.asarray(first + first * moved / self.n)


def contributions(told: Predicted, codes: Codes) -> FloatArray:
    """Return what each record says of the mean recall, (n,)."""
    found = _recalls(told, codes)
    each = np.empty(len(codes))
    for rows, part in codes.blocks():
        hits = _hits(told.places[rows], codes)
        each[rows] = found.moves(hits, unbiased(part)).mean(axis=1)
    return np.asarray(each + found.recall.mean())


def _recalls(told: Predicted, codes: Codes) -> _Recalls:
    n, k = len(codes), codes.n_classes
    total, squares, right = np.zeros(k), np.zeros(k), np.zeros(k)
    for rows, part in codes.blocks():
        decoded = unbiased(part)
        total += decoded.sum(axis=0)
        squares += (decoded**2).sum(axis=0)
        right += (decoded * _hits(told.places[rows], codes)).sum(axis=0)
    # A one-hot label is its own square: what the squares are above it is noise.
    noise = (squares - total).clip(0) / n**2
    share, kept = _drawn(total / n, noise, told.proba.mean(axis=0))
    held = share > _FEWEST  # shares sum to 1: some class always is
    recall = right[held] / n / share[held]
    return _Recalls(held, total[held] / n, share[held], recall, kept, n)


def _drawn(
    decoded: FloatArray, noise: FloatArray, expected: FloatArray
) -> tuple[FloatArray, float]:
    """Return the shares drawn to those that the model expects, and what is kept.

    As far as they differ by no more than noise (after James & Stein 1961, positive
    part, for more than three classes). A class counts as no rarer than the noise left
    could make it.
    """
    off = float(((decoded - expected) ** 2).sum())
    pull = _PULL * float(noise.sum()) * (len(decoded) > 3)
    kept = 1 - min(1.0, pull / off) if pull else 1.0
    drawn = expected + kept * (decoded - expected)
    return np.maximum(drawn, kept * np.sqrt(noise)), kept


def _hits(places: NDArray[np.int64], codes: Codes) -> Hits:
    return np.asarray(places[:, None] == np.arange(codes.n_classes))
