"""Balanced accuracy from codes: the mean over classes of ratios of two estimates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.labels.codes import Codes
from curvote.labels.decoded import decode_unbiased
from curvote.labels.predicted import Predictions
from curvote.validate import FloatArray

Hits = NDArray[np.bool_]

# A class of a smaller share than one record in so many counts as one that nobody has.
_FEWEST = 1e-4
# Noise alone makes a difference of once its variance in the mean, and seldom of this.
_PULL = 1.5


@dataclass(frozen=True)
class _Recalls:
    """Estimated shares and recalls of the classes that are present.

    ``shrinkage`` is what of the decoded shares' noise is left in those divided by,
    ``n`` the number of codes.
    """

    present: Hits
    decoded: FloatArray
    share: FloatArray
    recall: FloatArray
    shrinkage: float
    n: int

    def influences(self, hits: Hits, part: FloatArray) -> FloatArray:
        """Return each record's influence on the recalls of present classes.

        To the first order; and the mean of its second order, which is what the ratio
        of two estimates is off, over n.
        """
        decoded, right = part[:, self.present], (part * hits)[:, self.present]
        shift = self.shrinkage * (decoded - self.decoded) / self.share
        first = right / self.share - self.recall - self.recall * shift
        return np.asarray(first + first * shift / self.n)


def balanced_contributions(predictions: Predictions, codes: Codes) -> FloatArray:
    """Return each record's contribution to the mean recall, (n,)."""
    recalls = _estimate_recalls(predictions, codes)
    values = np.empty(len(codes))
    for rows, part in codes.blocks():
        hits = _hit_matrix(predictions.places[rows], codes)
        values[rows] = recalls.influences(hits, decode_unbiased(part)).mean(axis=1)
    return np.asarray(values + recalls.recall.mean())


def _estimate_recalls(predictions: Predictions, codes: Codes) -> _Recalls:
    n, k = len(codes), codes.n_classes
    total, squares, right = np.zeros(k), np.zeros(k), np.zeros(k)
    for rows, part in codes.blocks():
        decoded = decode_unbiased(part)
        total += decoded.sum(axis=0)
        squares += (decoded**2).sum(axis=0)
        right += (decoded * _hit_matrix(predictions.places[rows], codes)).sum(axis=0)
    # A one-hot label is its own square: what the squares are above it is noise.
    noise = (squares - total).clip(0) / n**2
    share, shrinkage = _shrink_shares(total / n, noise, predictions.proba.mean(axis=0))
    present = share > _FEWEST  # shares sum to 1: some class always is
    recall = right[present] / n / share[present]
    return _Recalls(present, total[present] / n, share[present], recall, shrinkage, n)


def _shrink_shares(
    decoded: FloatArray, noise: FloatArray, expected: FloatArray
) -> tuple[FloatArray, float]:
    """Return the shares shrunk to those that the model expects, and the shrinkage.

    As far as they differ by no more than noise (after James & Stein 1961, positive
    part, for more than three classes). A class counts as no rarer than the noise left
    could make it.
    """
    distance = float(((decoded - expected) ** 2).sum())
    pull = _PULL * float(noise.sum()) * (len(decoded) > 3)
    shrinkage = 1 - min(1.0, pull / distance) if pull else 1.0
    shrunk = expected + shrinkage * (decoded - expected)
    return np.maximum(shrunk, shrinkage * np.sqrt(noise)), shrinkage


def _hit_matrix(places: NDArray[np.int64], codes: Codes) -> Hits:
    return np.asarray(places[:, None] == np.arange(codes.n_classes))
