"""Randomized response: on signs, on labels, on bins, and with a public prior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.blanket import Blanket
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact
from curvote.mechanisms.base import FiniteMechanism, LabelMechanism
from curvote.mechanisms.exact import WORDS, Bits, Labels
from curvote.mechanisms.labels import ProbabilityPair, PureMechanism, valid_codes


class BinaryRR(FiniteMechanism):
    """Keeps a label -1 or +1 with probability q, else flips it (Warner 1965).

    A label is kept iff a 64-bit word is below ``threshold``, an integer rounded towards
    privacy, so q = threshold / 2^64 exactly. The output is biased: its mean is
    (2q - 1) x. Any input other than -1 and +1 is a UserError. Above epsilon 44 the loss
    stays at ln(2^64 - 1).
    """

    name = "binary_rr"
    unbiased = False

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        self.outputs = np.array([-1.0, 1.0])
        self.threshold = exact.logistic_threshold(self.epsilon)

    @property
    def flip_threshold(self) -> int:
        """The number of words, out of 2^64, that flip a label."""
        return WORDS - self.threshold

    @property
    def keep(self) -> float:
        """The probability q that a label is kept."""
        return self.threshold / WORDS

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the labels as float64; anything but -1 and +1 is a UserError."""
        return check_signs(values), 0

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        words = entropy.words(values.size).reshape(values.shape)
        return np.where(words < np.uint64(self.threshold), values, -values)

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return P(-1) and P(+1), [..., 2], for each label [...]."""
        labels, _ = self.clip(x)
        flip = self.flip_threshold / WORDS
        return np.where(labels[..., None] == self.outputs, self.keep, flip)

    def worst_ratio(self) -> Fraction:
        """Return the exact likelihood ratio q / (1 - q)."""
        return Fraction(self.threshold, self.flip_threshold)


def check_signs(values: ArrayLike) -> FloatArray:
    """Return labels -1/+1 as float64; anything else is a UserError."""
    labels = validate.finite(values=values)
    invalid = np.flatnonzero(np.abs(labels) != 1)
    if invalid.size:
        raise UserError(
            f"values holds {invalid.size} entries that are no label, the first is"
            f" {labels.flat[invalid[0]]!r}; labels are -1 or +1."
        )
    return labels


class KRR(PureMechanism):
    """Keeps a label with probability e^eps/(e^eps + K - 1), else names another one.

    All others are equally likely (Kairouz, Bonawitz & Ramage 2016), drawn exactly. The
    label is kept iff a 64-bit word is below ``threshold``, an integer rounded towards
    privacy. Outputs are codes (n,) int64.
    """

    name = "k_rr"

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        other_classes = self.n_classes - 1
        self.threshold = exact.logistic_threshold(self.epsilon, outside=other_classes)
        self.p = Fraction(self.threshold, WORDS)
        self.q = (1 - self.p) / other_classes
        self._ratio = self.p / self.q

    def blanket(self) -> Blanket:
        """Return what all laws have in common: a uniform label."""
        return Blanket.two_levels(self.epsilon, 1 / self.n_classes)

    def _draw(self, values: Labels, entropy: Entropy) -> Labels:
        out = values.copy()
        moved = np.flatnonzero(entropy.words(out.size) >= np.uint64(self.threshold))
        replacement = exact.uniform_below(self.n_classes - 1, moved.size, entropy)
        out[moved] = replacement + (replacement >= values[moved])
        return out

    def pair(self) -> ProbabilityPair:
        """Return the probabilities of the label, and of another one."""
        return self.p, self.q

    def possible_mask(self, outputs: NDArray[Any]) -> Bits:
        """Return for each output whether it is a label."""
        return valid_codes(outputs, self.n_classes)

    def outputs(self) -> Labels:
        """Return all labels."""
        return np.arange(self._check_output_count(self.n_classes))

    def _supports(self, outputs: Labels, labels: Labels) -> Bits:
        return np.asarray(outputs == labels)

    def _support_table(self, outputs: Labels) -> Bits:
        return np.asarray(outputs[:, None] == np.arange(self.n_classes))

    def _output_probabilities(self, outputs: Labels) -> list[ProbabilityPair]:
        return [(self.q, self.p)] * outputs.size


class RROnBins(FiniteMechanism):
    """Names the bin of a value by k-ary randomized response (Ghazi et al. 2022).

    "Regression with label differential privacy": one answer for each interval.
    ``cuts``, (k-1,), increase strictly within (-1, 1): bin j is [cuts[j-1],
    cuts[j]). ``answers``, (k,), increase strictly and are the outputs. Both are public.
    The bin is kept with probability e^eps/(e^eps + k - 1), else any other one is named,
    all equally likely, drawn exactly as `k_rr` does. One bin is a constant output; none
    stated are three of one width.
    """

    name = "rr_on_bins"
    unbiased = False

    def __init__(
        self,
        *,
        epsilon: float,
        cuts: ArrayLike = (-1 / 3, 1 / 3),
        answers: ArrayLike = (-2 / 3, 0, 2 / 3),
    ) -> None:
        super().__init__(epsilon=epsilon)
        self.cuts = _check_increasing(validate.finite(cuts=cuts), "cuts")
        self.outputs = _check_increasing(validate.finite(answers=answers), "answers")
        if len(self.outputs) != len(self.cuts) + 1:
            raise UserError(
                f"answers holds {len(self.outputs)} numbers and cuts {len(self.cuts)};"
                " each bin has one answer, and one bin more than there are cuts."
            )
        if (np.abs(self.cuts) >= 1).any():
            raise UserError("cuts must lie strictly between -1 and 1.")
        self.tight = self.k > 1
        self.label = KRR(epsilon=epsilon, n_classes=self.k) if self.k > 1 else None

    @property
    def answers(self) -> FloatArray:
        """The answer of each bin: these are the outputs."""
        return self.outputs

    @property
    def k(self) -> int:
        """The number of bins."""
        return len(self.outputs)

    @property
    def keep(self) -> Fraction:
        """The probability that the answer is that of the value's bin."""
        return self.label.p if self.label else Fraction(1)

    @property
    def move(self) -> Fraction:
        """The probability of each other answer."""
        return self.label.q if self.label else Fraction(0)

    def bins(self, x: ArrayLike) -> Labels:
        """Return the index of each value's bin, 0..k-1."""
        return np.searchsorted(self.cuts, self.clip(x)[0], side="right")

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        places = self.bins(values)
        if self.label is None:
            return self.outputs[places]
        reported = self.label.randomize(places.ravel(), entropy)
        return np.asarray(self.outputs[reported.reshape(places.shape)])

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each answer, [..., k], for each input [...]."""
        same_bin = self.bins(x)[..., None] == np.arange(self.k)
        return np.where(same_bin, float(self.keep), float(self.move))

    def worst_ratio(self) -> Fraction:
        """Return the exact likelihood ratio of a value's bin to another."""
        return self.keep / self.move if self.label else Fraction(1)


def _check_increasing(numbers: FloatArray, name: str) -> FloatArray:
    if numbers.ndim != 1 or any(low >= high for low, high in pairwise(numbers)):
        raise UserError(f"{name} must be one row of numbers that increase strictly.")
    return numbers


def _check_prior(prior: ArrayLike, n_classes: int) -> FloatArray:
    """Return a valid prior as float64, (K,) or (n, K)."""
    values = validate.finite(prior=prior)
    if values.ndim not in {1, 2} or values.shape[-1] != n_classes:
        raise UserError(
            f"prior has shape {values.shape}; it holds one number for each of the"
            f" {n_classes} classes: ({n_classes},), or (n, {n_classes}) for n clients."
        )
    invalid = (values < 0).any(axis=-1) | ~values.any(axis=-1)
    if invalid.any():
        place = f" (row {int(np.argmax(invalid))})" if values.ndim == 2 else ""
        raise UserError(f"prior must hold no negative number, and one above 0{place}.")
    return values


def likely_labels(prior: FloatArray, epsilon: float) -> Bits:
    """Return the likely labels of each row of ``prior``, (n, K).

    They are those of largest prior. k maximises e^eps/(e^eps + k - 1) times their
    prior: the probability that the output is the label (Ghazi et al. 2021, algorithm 2,
    with k counted from 1).
    """
    likely = np.zeros(prior.shape, dtype=bool)
    rank = np.arange(prior.shape[1])
    for part in exact.row_chunks(*prior.shape):
        rows = prior[part] / prior[part].max(axis=1, keepdims=True)
        order = np.argsort(-rows, axis=1, kind="stable")
        right = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
        right /= 1 + rank * math.exp(-epsilon)
        k = np.argmax(right, axis=1) + 1
        np.put_along_axis(likely[part], order, rank < k[:, None], axis=1)
    return likely


@dataclass(frozen=True)
class _ResponseShares:
    """Probabilities of randomized response among k labels."""

    k: int
    threshold: int

    @classmethod
    def of(cls, k: int, epsilon: float) -> _ResponseShares:
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
        checked_prior = _check_prior(prior, self.n_classes)
        self.shared = checked_prior.ndim == 1
        likely = likely_labels(np.atleast_2d(checked_prior), self.epsilon)
        self.k = np.count_nonzero(likely, axis=1)
        # The rank of each likely label, (n, K), -1 for others; and the label of each
        # rank, (n, largest k), of which the first k count.
        kind, most = np.min_scalar_type(-self.n_classes), int(self.k.max(initial=1))
        self._rank = np.empty(likely.shape, kind)
        self._top = np.empty((len(likely), most), kind)
        for part in exact.row_chunks(*likely.shape):
            inside = likely[part]
            reached = np.cumsum(inside, axis=1, dtype=kind)
            self._rank[part] = np.where(inside, reached - 1, -1)
            self._top[part] = np.argsort(~inside, axis=1, kind="stable")[:, :most]
        kinds, self._kind = np.unique(self.k, return_inverse=True)
        self._shares = [_ResponseShares.of(k, self.epsilon) for k in kinds.tolist()]
        self.tight = bool((self.k > 1).any())
        # Of the largest k, where it differs.
        self.threshold = self._shares[-1].threshold if self._shares else WORDS

    def _prior_rows(self, n: int) -> Labels:
        """Return the row of the prior for each of ``n`` clients."""
        if self.shared:
            return np.zeros(n, dtype=np.int64)
        if n != len(self.k):
            raise UserError(
                f"prior has {len(self.k)} rows, one a client, but there are {n}"
                " clients."
            )
        return np.arange(n)

    def _per_row(self, value: Callable[[_ResponseShares], Any]) -> FloatArray:
        """Return a number that depends on k, for each row of the prior."""
        return np.array([float(value(shares)) for shares in self._shares])[self._kind]

    def _draw(self, values: Labels, entropy: Entropy) -> Labels:
        out, at = np.empty(values.size, dtype=np.int64), self._prior_rows(values.size)
        kinds = self._kind[at]
        order = np.argsort(kinds, kind="stable")
        starts = np.searchsorted(kinds[order], np.arange(1, len(self._shares)))
        # The clients of each k in turn.
        for shares, which in zip(self._shares, np.split(order, starts), strict=False):
            rows = at[which]
            rank = self._rank[rows, values[which]].astype(np.int64)
            if shares.k == 1:
                out[which] = self._top[rows, 0]
                continue
            # Every client draws for both cases: which words are used, and how many,
            # must not tell a likely label from an unlikely one.
            moves = entropy.words(rank.size) >= np.uint64(shares.threshold)
            replacement = exact.uniform_below(shares.k - 1, rank.size, entropy)
            uniform = exact.uniform_below(shares.k, rank.size, entropy)
            reported = np.where(moves, replacement + (replacement >= rank), rank)
            out[which] = self._top[rows, np.where(rank < 0, uniform, reported)]
        return out

    def possible_mask(self, outputs: NDArray[Any]) -> Bits:
        """Return for each output whether it is a likely label of its client."""
        valid, at = valid_codes(outputs, self.n_classes), self._prior_rows(len(outputs))
        codes = outputs[valid].astype(np.int64).ravel()
        valid[valid] = self._rank[at[valid], codes] >= 0
        return valid

    def outputs(self) -> Labels:
        """Return the k likely labels of a shared prior."""
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
        rows = self._prior_rows(len(outputs))
        keep = self._per_row(lambda law: exact.exact_log(law.keep))[rows]
        even = self._per_row(lambda law: exact.exact_log(law.even))[rows]
        # With k = 1 no other likely label is ever named.
        moves = [law.move for law in self._shares]
        logs = [exact.exact_log(move) if move else -math.inf for move in moves]
        move = np.array(logs)[self._kind]
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
        (shares,), rows = self._shares, []
        for label, rank in enumerate(self._rank[0]):
            row = [shares.keep if label == at else shares.move for at in outputs]
            rows.append(row if rank >= 0 else [shares.even] * len(outputs))
        return rows

    def _fill_rows(self, at: Labels, likely: FloatArray, other: Any) -> FloatArray:
        """Return (n, K): ``likely`` at likely labels, ``other`` elsewhere.

        ``likely`` and ``other`` hold one for each client, (n,).
        """
        out = np.empty((at.size, self.n_classes))
        sides = np.broadcast_to(other, at.shape)
        for part in exact.row_chunks(at.size, self.n_classes):
            inside = self._rank[at[part]] >= 0
            out[part] = np.where(inside, likely[part, None], sides[part, None])
        return out

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the estimate (z - move)/(keep - move), (n, n_classes)."""
        at = self._prior_rows(len(outputs))
        high = self._per_row(lambda law: (1 - law.move) / law.gap)[at]
        low = self._per_row(lambda law: -law.move / law.gap)[at]
        out = self._fill_rows(at, low, 0.0)
        out[np.arange(at.size), outputs] = high
        return out

    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return P(output | label) over that of the output's own label, (n, K)."""
        at = self._prior_rows(len(outputs))
        moved = self._per_row(lambda law: law.move / law.keep)[at]
        even = self._per_row(lambda law: law.even / law.keep)[at]
        out = self._fill_rows(at, moved, even)
        out[np.arange(at.size), outputs] = 1.0
        return out

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of ``decode``: one-hot for the k likely labels only."""
        return self._label_moment(x, lambda law, share: (share - law.move) / law.gap)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of ``decode``, (n, n_classes)."""
        return self._label_moment(x, lambda law, p: p * (1 - p) / law.gap**2)

    def _label_moment(
        self, x: ArrayLike, value: Callable[[_ResponseShares, Fraction], Fraction]
    ) -> FloatArray:
        """Return ``value`` of the probability of each likely label."""
        (labels, _), rows = self.clip(x), np.arange(np.size(x))
        at = self._prior_rows(labels.size)
        label_value = self._per_row(lambda law: value(law, law.keep))[at]
        other_value = self._per_row(lambda law: value(law, law.move))[at]
        uniform_value = self._per_row(lambda law: value(law, law.even))[at]
        likely = self._rank[at, labels] >= 0
        out = self._fill_rows(at, np.where(likely, other_value, uniform_value), 0.0)
        out[rows[likely], labels[likely]] = label_value[likely]
        return out
