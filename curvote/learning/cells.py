"""Cell classifiers: unbiased shares from noised (cell, class) answers.

A client names its cell of one public partition and its class together, by k-RR on
C K words. Classifiers are tables of scores (Q, C, K): a record's score of a class is
the sum over partitions of that of its cell, and the largest wins.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.curves.partition import Partitions
from curvote.mechanisms.randomized_response import KRR

Array = NDArray[np.float64]
IndexArray = NDArray[np.int64]
# A share of a class that noise made smaller, or negative.
SMALLEST_SHARE = 1e-3


@dataclass(frozen=True)
class CellShares:
    """Unbiased shares (Q, C, K) of cells and classes from n (Q,) answers.

    ``noise`` (Q,) is the standard deviation that randomized response alone gives one
    of them.
    """

    joint: Array
    n: Array
    noise: Array

    @property
    def classes(self) -> Array:
        """The shares (K,) of the classes, from the answers to all questions."""
        shares = np.average(self.joint.sum(axis=1), axis=0, weights=self.n)
        return np.asarray(
            np.maximum(shares, SMALLEST_SHARE)
            / np.maximum(shares, SMALLEST_SHARE).sum()
        )


def estimate_shares(
    question: IndexArray,
    answer: IndexArray,
    shape: tuple[int, int, int],
    epsilon: float,
) -> CellShares:
    """Return unbiased shares from noised answers (n,) to questions (n,).

    An answer is cell K + class. A question that nobody answered says nothing: every
    word is as likely.
    """
    q, words = shape[0], shape[1] * shape[2]
    tallies = np.bincount(question * words + answer, minlength=q * words)
    counts = tallies.reshape(q, words).astype(np.float64)
    totals = counts.sum(axis=1)
    n = np.maximum(totals, 1)
    counts[totals == 0] = 1 / words
    mechanism = KRR(epsilon=epsilon, n_classes=words)
    false_rate, gap = float(mechanism.q), float(mechanism.p - mechanism.q)
    joint = (counts / n[:, None] - false_rate) / gap
    noise = np.sqrt(false_rate * (1 - false_rate) / n) / gap
    return CellShares(joint.reshape(shape), n, noise)


def naive_bayes_scores(shares: CellShares) -> Array:
    """Return log-odds scores (Q, C, K) of naive Bayes.

    A share stands for at least what is noise, one standard deviation of it, and one
    answer: so cells that say nothing sure say little.
    """
    floor = shares.noise + 1 / shares.n
    joint = np.maximum(shares.joint, floor[:, None, None])
    scores = np.log(joint / joint.sum(axis=1, keepdims=True))
    scores[0] += np.log(shares.classes)
    return np.asarray(scores)


def best_question(shares: CellShares) -> tuple[int, Array]:
    """Return the most accurate question by the answers, and its scores.

    As the answers tell it: the same ones choose, so its estimated accuracy is too rosy
    and is not shown.
    """
    right = shares.joint.max(axis=2).sum(axis=1)
    place = int(right.argmax())
    return place, shares.joint[[place]]


def leaf_scores(shares: CellShares) -> Array:
    """Return scores (1, C, K) of one partition, by its cells' majorities.

    Unless it leads the class that all leaves elect by less than its standard error.
    """
    scores = shares.joint[:1].copy()
    scores[..., shares.classes.argmax()] += np.sqrt(2) * shares.noise[0]
    return scores


def predict_cells(scores: Array, partitions: Partitions, z: Array) -> IndexArray:
    """Return the class indices (n,) that scores (Q, C, K) predict for z."""
    return np.asarray(total_scores(scores, partitions, z).argmax(axis=1))


def total_scores(scores: Array, partitions: Partitions, z: Array) -> Array:
    """Return the scores (n, K) of each class for z, by scores (Q, C, K) of cells."""
    total = np.zeros((len(z), scores.shape[2]))
    for row in range(partitions.count):
        cells = partitions.place(z, np.full(len(z), row))
        total += scores[row, cells]
    return total
