"""Balanced accuracy from codes: the mean over classes of ratios of two estimates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.decoded import unbiased
from curvote.labels.predicted import Predicted
from curvote.validate import FloatArray

Hits = NDArray[np.bool_]

# A class of a smaller share than one record in so many counts as one that nobody has.
_FEWEST = 1e-4


@dataclass(frozen=True)
class _Recalls:
    """For each class (K,) the decoded share, the one that is divided by, the recall.

    ``kept`` is what of the decoded share's noise is left in the one that is divided by.
    """

    decoded: FloatArray
    share: FloatArray
    recall: FloatArray
    kept: float

    @property
    def held(self) -> Hits:
        """The classes that somebody has, so far as the codes show."""
        return np.asarray(self.share > _FEWEST)

    def moves(self, hits: Hits, part: FloatArray) -> FloatArray:
        """Return how each record moves the recalls of the classes held (n, held).

        To the first order; and the mean of its second order, which is what the ratio
        of two estimates is off, over n.
        """
        moved = self.kept * (part - self.decoded) / self.share
        first = (part * hits) / self.share - self.recall - self.recall * moved
        return np.asarray((first + first * moved / len(part))[:, self.held])


def contributions(told: Predicted, codes: Codes) -> FloatArray:
    """Return what each record says of the mean recall, (n,)."""
    found = _recalls(told, codes)
    if not found.held.any():
        raise UserError(
            f"{len(codes)} codes at epsilon {codes.epsilon:g} show none of the"
            f" {codes.n_classes} classes: balanced accuracy takes more labels."
        )
    each = np.empty(len(codes))
    for rows, part in codes.blocks():
        hits = _hits(told.places[rows], codes)
        each[rows] = found.moves(hits, unbiased(part)).mean(axis=1)
    return np.asarray(each + found.recall[found.held].mean())


def _recalls(told: Predicted, codes: Codes) -> _Recalls:
    n, k = len(codes), codes.n_classes
    total, squares, right = np.zeros(k), np.zeros(k), np.zeros(k)
    for rows, part in codes.blocks():
        decoded = unbiased(part)
        total += decoded.sum(axis=0)
        squares += (decoded**2).sum(axis=0)
        right += (decoded * _hits(told.places[rows], codes)).sum(axis=0)
    noise = (squares / n - (total / n) ** 2) / n
    share, kept = _drawn(total / n, noise, told.proba.mean(axis=0))
    recall = right / n / np.where(share > _FEWEST, share, 1.0)
    return _Recalls(total / n, share, recall, kept)


def _drawn(
    decoded: FloatArray, noise: FloatArray, expected: FloatArray
) -> tuple[FloatArray, float]:
    """Return the shares drawn to those that the model expects, and what is kept.

    As far as they differ by no more than noise (James & Stein 1961, positive part). A
    class counts as held by as many as noise alone could show.
    """
    k, off = len(decoded), float(((decoded - expected) ** 2).sum())
    pull = noise.sum() * max(0, k - 3) / (k - 1)
    kept = 1 - min(1.0, float(pull) / off) if pull else 1.0
    drawn = expected + kept * (decoded - expected)
    return np.maximum(drawn, np.sqrt(noise)), kept


def _hits(places: NDArray[np.int64], codes: Codes) -> Hits:
    return np.asarray(places[:, None] == np.arange(codes.n_classes))
