"""Randomized response among the labels that a public prior holds likely."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms import bits, exact
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.bits import Bits, Labels
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.labels import are_codes
from curvote.validate import FloatArray


def _checked(prior: ArrayLike, n_classes: int) -> FloatArray:
    """Return the prior as float64, (K,) or (n, K), if it is one."""
    given = validate.finite(prior=prior)
    if given.ndim not in {1, 2} or given.shape[-1] != n_classes:
        raise UserError(
            f"prior has shape {given.shape}; it holds one number for each of the"
            f" {n_classes} classes: ({n_classes},), or (n, {n_classes}) for n clients."
        )
    wrong = (given < 0).any(axis=-1) | ~given.any(axis=-1)
    if wrong.any():
        at = f" (row {int(np.argmax(wrong))})" if given.ndim == 2 else ""
        raise UserError(f"prior must hold no negative number, and one above 0{at}.")
    return given


def likely_labels(prior: FloatArray, epsilon: float) -> Bits:
    """Say of each row of ``prior``, (n, K), which are its k likely labels.

    They are those of largest prior. k maximises e^eps/(e^eps + k - 1) times their
    prior: the probability that the output is the label (Ghazi et al. 2021, algorithm 2,
    with k counted from 1).
    """
    found = np.zeros(prior.shape, dtype=bool)
    rank = np.arange(prior.shape[1])
    for part in bits.chunks(*prior.shape):
        rows = prior[part] / prior[part].max(axis=1, keepdims=True)
        order = np.argsort(-rows, axis=1, kind="stable")
        right = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
        right /= 1 + rank * math.exp(-epsilon)
        k = np.argmax(right, axis=1) + 1
        np.put_along_axis(found[part], order, rank < k[:, None], axis=1)
    return found


@dataclass(frozen=True)
class _Shares:
    """Randomized response among k labels: the share kept, of each other, of any."""

    k: int
    threshold: int

    @classmethod
    def of(cls, k: int, epsilon: float) -> _Shares:
        if k == 1:
            return cls(1, WORDS)
        return cls(k, exact.logistic_threshold(epsilon, outside=k - 1))

    @property
    def keep(self) -> Fraction:
        return Fraction(self.threshold, WORDS)

    @property
    def move(self) -> Fraction:
        return (1 - self.keep) / max(1, self.k - 1)

    @property
    def even(self) -> Fraction:
        return Fraction(1, self.k)

    @property
    def gap(self) -> Fraction:
        return self.keep - self.move

    def worst_ratio(self, n_classes: int) -> Fraction:
        """Return the largest ratio, labels outside the k likely ones included."""
        if self.k == 1:
            return Fraction(1)
        pairs = [self.keep / self.move]
        if self.k < n_classes:
            pairs += [self.keep / self.even, self.even / self.move]
        return max(pairs)


class RRWithPrior(LabelMechanism):
    """Randomized response among the k likeliest labels (Ghazi et al. 2021).

    One of them is kept with probability e^eps/(e^eps + k - 1), else another of them is
    named; any other label becomes one of the k uniformly. ``prior`` is (n_classes,), or
    one for each client, (n, n_classes): then labels and outputs are those of these n
    clients, and k differs. It need not sum to 1 and must be public. With k = 1 the
    output is constant. Outputs are codes (n,) int64. ``decode`` is unbiased for the k
    labels, and 0 for the others.
    """

    name = "rr_with_prior"
    unbiased = False

    def __init__(self, *, epsilon: float, n_classes: int, prior: ArrayLike) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        given = _checked(prior, self.n_classes)
        self.shared = given.ndim == 1
        likely = likely_labels(np.atleast_2d(given), self.epsilon)
        self.k = np.count_nonzero(likely, axis=1)
        self._rank, self._top = _tables(likely, int(self.k.max(initial=1)))
        kinds, self._kind = np.unique(self.k, return_inverse=True)
        self._shares = [_Shares.of(k, self.epsilon) for k in kinds.tolist()]
        self.tight = bool((self.k > 1).any())
        # Of the largest k, where it differs.
        self.threshold = self._shares[-1].threshold if self._shares else WORDS

    def _at(self, n: int) -> Labels:
        """Return the row of the prior of each of ``n`` clients."""
        if self.shared:
            return np.zeros(n, dtype=np.int64)
        if n != len(self.k):
            raise UserError(
                f"prior has {len(self.k)} rows, one a client, but there are {n}"
                " clients."
            )
        return np.arange(n)

    def _each(self, value: Callable[[_Shares], Any]) -> FloatArray:
        """Return a number that k decides, for each row of the prior."""
        return np.array([float(value(one)) for one in self._shares])[self._kind]

    def _draw(self, values: Labels, entropy: Entropy) -> Labels:
        out, at = np.empty(values.size, dtype=np.int64), self._at(values.size)
        for shares, which in self._groups(at):
            rows = at[which]
            rank = self._rank[rows, values[which]].astype(np.int64)
            out[which] = self._top[rows, _moved(rank, shares, entropy)]
        return out

    def _groups(self, at: Labels) -> Iterator[tuple[_Shares, Labels]]:
        """Yield the places of the clients of each k."""
        kinds = self._kind[at]
        order = np.argsort(kinds, kind="stable")
        bounds = np.searchsorted(kinds[order], np.arange(len(self._shares) + 1))
        for i, shares in enumerate(self._shares):
            yield shares, order[bounds[i] : bounds[i + 1]]

    def possible(self, outputs: NDArray[Any]) -> Bits:
        """Say for each output whether it is one of its client's k likely labels."""
        known, at = are_codes(outputs, self.n_classes), self._at(len(outputs))
        given = outputs[known].astype(np.int64).ravel()
        known[known] = self._rank[at[known], given] >= 0
        return known

    def outputs(self) -> Labels:
        """Return the k likely labels, if there is one prior; else a UserError."""
        if len(self.k) != 1:
            raise UserError(f"{self.name} has other outputs for each client here.")
        if self.k[0] > self.most_outputs:
            raise UserError(
                f"{self.name} has {self.k[0]} outputs here; at most"
                f" {self.most_outputs} are written out."
            )
        return np.asarray(self._top[0], dtype=np.int64)

    def worst_ratio(self) -> Fraction:
        """Return the largest ratio, over all clients and their unlikely labels."""
        ratios = [shares.worst_ratio(self.n_classes) for shares in self._shares]
        return max(ratios, default=Fraction(1))

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        outputs, (labels, _) = np.asarray(at), self.clip(x)
        rows = self._at(len(outputs))
        keep = self._each(lambda one: exact.log(one.keep))[rows]
        even = self._each(lambda one: exact.log(one.even))[rows]
        # With k = 1 no other likely label is ever named.
        move = self._each(lambda one: exact.log(one.move) if one.move else -math.inf)
        likely = np.where(labels == outputs, keep, move[rows])
        return np.where(self._rank[rows, labels] < 0, even, likely)

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each of ``outputs()``, (n, k), for labels (n,)."""
        labels, _ = self.clip(x)
        table = np.array(self.channel(), dtype=np.float64)
        return np.asarray(table[labels])

    def channel(self) -> list[list[Fraction]]:
        """Return P(output | label) exactly: a row a label, a column an output."""
        outputs = self.outputs().tolist()
        return [self._row(label, outputs) for label in range(self.n_classes)]

    def _row(self, label: int, outputs: list[int]) -> list[Fraction]:
        (shares,) = self._shares
        if self._rank[0, label] < 0:
            return [shares.even] * len(outputs)
        return [shares.keep if label == at else shares.move for at in outputs]

    def _filled(self, at: Labels, likely: FloatArray, other: Any) -> FloatArray:
        """Return (n, K): a number a client for its likely labels, another for others.

        ``likely`` and ``other`` hold one for each client, (n,).
        """
        out = np.empty((at.size, self.n_classes))
        sides = np.broadcast_to(other, at.shape)
        for part in bits.chunks(at.size, self.n_classes):
            inside = self._rank[at[part]] >= 0
            out[part] = np.where(inside, likely[part, None], sides[part, None])
        return out

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the estimate (z - move)/(keep - move), (n, n_classes)."""
        at = self._at(len(outputs))
        high = self._each(lambda one: (1 - one.move) / one.gap)[at]
        out = self._filled(at, self._each(lambda one: -one.move / one.gap)[at], 0.0)
        out[np.arange(at.size), outputs] = high
        return out

    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return P(output | label) over that of the output's own label, (n, K)."""
        at = self._at(len(outputs))
        moved = self._each(lambda one: one.move / one.keep)[at]
        out = self._filled(at, moved, self._each(lambda one: one.even / one.keep)[at])
        out[np.arange(at.size), outputs] = 1.0
        return out

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of ``decode``: one-hot for the k likely labels only."""
        return self._moment(x, lambda one, share: (share - one.move) / one.gap)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of ``decode``, (n, n_classes)."""
        return self._moment(x, lambda one, share: share * (1 - share) / one.gap**2)

    def _moment(
        self, x: ArrayLike, value: Callable[[_Shares, Fraction], Fraction]
    ) -> FloatArray:
        """Return ``value`` of the share with which each likely label is named."""
        (labels, _), rows = self.clip(x), np.arange(np.size(x))
        at = self._at(labels.size)
        own = self._each(lambda one: value(one, one.keep))[at]
        other = self._each(lambda one: value(one, one.move))[at]
        even = self._each(lambda one: value(one, one.even))[at]
        likely = self._rank[at, labels] >= 0
        out = self._filled(at, np.where(likely, other, even), 0.0)
        out[rows[likely], labels[likely]] = own[likely]
        return out


def _tables(likely: Bits, most: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rank of each label among the likely ones, and the label of a rank.

    (n, K), -1 for other labels; and (n, most), of which the first k count.
    """
    n, n_classes = likely.shape
    kind = np.min_scalar_type(-n_classes)
    rank, top = np.empty((n, n_classes), kind), np.empty((n, most), kind)
    for part in bits.chunks(n, n_classes):
        inside = likely[part]
        reached = np.cumsum(inside, axis=1, dtype=kind)
        rank[part] = np.where(inside, reached - 1, -1)
        top[part] = np.argsort(~inside, axis=1, kind="stable")[:, :most]
    return rank, top


def _moved(rank: Labels, shares: _Shares, entropy: Entropy) -> Labels:
    """Return the ranks that clients of one k name; ``rank`` is -1 if unlikely."""
    if shares.k == 1:
        return np.zeros(rank.size, dtype=np.int64)
    # Every client draws for both cases: which words are used, and how many, must
    # not tell a likely label from an unlikely one.
    moves = entropy.words(rank.size) >= np.uint64(shares.threshold)
    others = exact.below(shares.k - 1, rank.size, entropy)
    anyone = exact.below(shares.k, rank.size, entropy)
    kept = np.where(moves, others + (others >= rank), rank)
    return np.where(rank < 0, anyone, kept)
