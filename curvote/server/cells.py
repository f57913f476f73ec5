"""What noised (cell, class) answers say: counts without bias, and classifiers of them.

A client names its cell of one public partition and its class together, by k-RR on
C K words. Classifiers are tables of scores (Q, C, K): a record's score of a class is
the sum over partitions of that of its cell, and the largest wins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.k_rr import KRR
from curvote.representation.partition import Partitions

Array = NDArray[np.float64]
Index = NDArray[np.int64]
# A share of a class that noise made smaller, or negative.
LEAST = 1e-3


@dataclass(frozen=True)
class Shares:
    """Unbiased shares (Q, C, K) of cells and classes together, from n (Q,) answers.

    ``noise`` (Q,) is the standard deviation that randomized response alone gives one
    of them.
    """

    joint: Array
    n: Array
    noise: Array

    @property
    def classes(self) -> Array:
        """The shares (K,) of the classes, from the answers to all questions."""
        found = np.average(self.joint.sum(axis=1), axis=0, weights=self.n)
        return np.asarray(np.maximum(found, LEAST) / np.maximum(found, LEAST).sum())


def shares(
    question: Index, answer: Index, shape: tuple[int, int, int], epsilon: float
) -> Shares:
    """Return what answers (n,) to questions (n,) say, without bias; shape (Q, C, K).

    An answer is cell K + class. A question that nobody answered says nothing: every
    word is as likely.
    """
    q, words = shape[0], shape[1] * shape[2]
    given = np.bincount(question * words + answer, minlength=q * words)
    counts = given.reshape(q, words).astype(np.float64)
    asked = counts.sum(axis=1)
    n = np.maximum(asked, 1)
    counts[asked == 0] = 1 / words
    noised = KRR(epsilon=epsilon, n_classes=words)
    other, gap = float(noised.q), float(noised.p - noised.q)
    joint = (counts / n[:, None] - other) / gap
    noise = np.sqrt(other * (1 - other) / n) / gap
    return Shares(joint.reshape(shape), n, noise)


def naive_bayes(found: Shares) -> Array:
    """Return log-odds scores (Q, C, K): classes, and cells given the class.

    A share stands for at least what is noise, one standard deviation of it, and one
    answer: so cells that say nothing sure say little.
    """
    floor = found.noise + 1 / found.n
    joint = np.maximum(found.joint, floor[:, None, None])
    scores = np.log(joint / joint.sum(axis=1, keepdims=True))
    scores[0] += np.log(found.classes)
    return np.asarray(scores)


def best(found: Shares) -> tuple[int, Array]:
    """Return the question whose cells name most classes rightly, and scores (1, C, K).

    As the answers tell it: the same ones choose, so its estimated accuracy is too rosy
    and is not shown.
    """
    right = found.joint.max(axis=2).sum(axis=1)
    place = int(right.argmax())
    return place, found.joint[[place]]


def leaves(found: Shares) -> Array:
    """Return scores (1, C, K) of one partition: a leaf's class is its largest one.

    Unless it leads the class that all leaves elect by less than its standard error.
    """
    scores = found.joint[:1].copy()
    scores[..., found.classes.argmax()] += np.sqrt(2) * found.noise[0]
    return scores


def named(scores: Array, asked: Partitions, z: Array) -> Index:
    """Return the place of the class (n,) that scores (Q, C, K) name for z (n, d)."""
    total = np.zeros((len(z), scores.shape[2]))
    for row in range(asked.count):
        cells = asked.place(z, np.full(len(z), row))
        total += scores[row, cells]
    return np.asarray(total.argmax(axis=1))
