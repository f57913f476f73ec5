"""Randomized response among the labels that a public prior holds likely."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms import exact
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.bits import Bits, Labels
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.labels import are_codes
from curvote.validate import FloatArray


def _checked(prior: ArrayLike, n_classes: int) -> FloatArray:
    """Return the prior as float64, its largest entry scaled to 1."""
    given = validate.finite(prior=prior)
    if given.shape != (n_classes,):
        raise UserError(
            f"prior has shape {given.shape}; it holds one number for each of the"
            f" {n_classes} classes."
        )
    if (given < 0).any() or not given.any():
        raise UserError("prior must hold no negative number, and one above 0.")
    return np.asarray(given / given.max())


def likely_labels(prior: FloatArray, epsilon: float) -> Labels:
    """Return the k labels of largest prior, in increasing order.

    k maximises e^eps/(e^eps + k - 1) times their prior: the probability that the
    output is the label (Ghazi et al. 2021, algorithm 2, with k counted from 1).
    """
    order = np.argsort(-prior, kind="stable")
    rank = np.arange(prior.size)
    right = np.cumsum(prior[order]) / (1 + rank * math.exp(-epsilon))
    return np.sort(order[: int(np.argmax(right)) + 1])


class RRWithPrior(LabelMechanism):
    """Randomized response among the k likeliest labels (Ghazi et al. 2021).

    One of them is kept with probability e^eps/(e^eps + k - 1), else another of them is
    named; any other label becomes one of the k uniformly. ``prior``, (n_classes,), need
    not sum to 1 and must be public. With k = 1 the output is constant. Outputs are
    codes (n,) int64. ``decode`` is unbiased for the k labels, and 0 for the others.
    """

    name = "rr_with_prior"
    unbiased = False

    def __init__(self, *, epsilon: float, n_classes: int, prior: ArrayLike) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        self.top = likely_labels(_checked(prior, self.n_classes), self.epsilon)
        self.k = self.top.size
        self.tight = self.k > 1
        self.threshold = WORDS
        if self.k > 1:
            self.threshold = exact.logistic_threshold(self.epsilon, outside=self.k - 1)
        self._keep = Fraction(self.threshold, WORDS)
        self._move = (1 - self._keep) / max(1, self.k - 1)
        self._even = Fraction(1, self.k)
        self._rank = np.full(self.n_classes, -1)
        self._rank[self.top] = np.arange(self.k)

    def _draw(self, values: Labels, entropy: Entropy) -> Labels:
        if self.k == 1:
            return np.full(values.size, self.top[0])
        # Every client draws for both cases: which words are used, and how many, must
        # not tell a likely label from an unlikely one.
        rank = self._rank[values]
        moves = entropy.words(rank.size) >= np.uint64(self.threshold)
        others = exact.below(self.k - 1, rank.size, entropy)
        anyone = exact.below(self.k, rank.size, entropy)
        kept = np.where(moves, others + (others >= rank), rank)
        return np.asarray(self.top[np.where(rank < 0, anyone, kept)])

    def possible(self, outputs: NDArray[Any]) -> Bits:
        """Say for each output whether it is one of the k likely labels."""
        known = are_codes(outputs, self.n_classes)
        known[known] = self._rank[outputs[known].astype(np.int64).ravel()] >= 0
        return known

    def outputs(self) -> Labels:
        """Return the k likely labels."""
        if self.k > self.most_outputs:
            raise UserError(
                f"{self.name} has {self.k} outputs here; at most {self.most_outputs}"
                " are written out."
            )
        return self.top

    def worst_ratio(self) -> Fraction:
        """Return the largest ratio, labels outside the k likely ones included."""
        if self.k == 1:
            return Fraction(1)
        pairs = [self._keep / self._move]
        if self.k < self.n_classes:
            pairs += [self._keep / self._even, self._even / self._move]
        return max(pairs)

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        logs = [exact.log(share) for share in (self._keep, self._move, self._even)]
        return self._choose(self.clip(x)[0], np.asarray(at), *logs)

    def _choose(
        self, labels: Labels, at: Labels, keep: float, move: float, even: float
    ) -> FloatArray:
        """Return the one of three values that belongs to each label and output."""
        likely = np.where(labels == at, keep, move)
        return np.where(self._rank[labels] < 0, even, likely)

    def _for_each(self, x: ArrayLike, *values: Fraction) -> FloatArray:
        """Return those values for labels (n,) and all k likely labels, (n, k)."""
        labels, _ = self.clip(x)
        return self._choose(labels[:, None], self.top, *map(float, values))

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each of ``outputs()``, (n, k), for labels (n,)."""
        self.outputs()
        return self._for_each(x, self._keep, self._move, self._even)

    def channel(self) -> list[list[Fraction]]:
        """Return P(output | label) exactly: a row a label, a column an output."""
        outputs = self.outputs().tolist()
        return [self._row(label, outputs) for label in range(self.n_classes)]

    def _row(self, label: int, outputs: list[int]) -> list[Fraction]:
        if self._rank[label] < 0:
            return [self._even] * self.k
        return [self._keep if label == at else self._move for at in outputs]

    @property
    def _gap(self) -> Fraction:
        return self._keep - self._move

    def _spread(self, columns: FloatArray) -> FloatArray:
        """Return (n, k) values of the likely labels among 0 for all others."""
        out = np.zeros((len(columns), self.n_classes))
        out[:, self.top] = columns
        return out

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the estimate (z - move)/(keep - move), (n, n_classes)."""
        high, low = ((z - self._move) / self._gap for z in (1, 0))
        hits = outputs[:, None] == self.top
        return self._spread(np.where(hits, float(high), float(low)))

    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return P(output | label) over that of the output's own label, (n, K)."""
        hits = outputs[:, None] == np.arange(self.n_classes)
        likely = np.where(
            self._rank >= 0, self._move / self._keep, self._even / self._keep
        )
        return np.where(hits, 1.0, likely.astype(np.float64))

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of ``decode``: one-hot for the k likely labels only."""
        shares = (self._keep, self._move, self._even)
        means = [(share - self._move) / self._gap for share in shares]
        return self._spread(self._for_each(x, *means))

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of ``decode``, (n, n_classes)."""
        shares = (self._keep, self._move, self._even)
        variances = [share * (1 - share) / self._gap**2 for share in shares]
        return self._spread(self._for_each(x, *variances))
