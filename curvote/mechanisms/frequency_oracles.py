"""Frequency oracles: unary codes, subset selection and Hadamard response."""

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.blanket import Blanket
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact
from curvote.mechanisms.exact import WORDS, Bits, Labels, Packed
from curvote.mechanisms.labels import (
    PackedMechanism,
    ProbabilityPair,
    SupportMechanism,
    fill_in_blocks,
    valid_codes,
)

# What computing p and q in float64 may have added to the loss is no user's mistake.
ROUNDING = Fraction(1, 1 << 50)


class _UnaryCode(PackedMechanism):
    """The label's bit is 1 with probability p, each other bit with probability q.

    Replacing a label changes two bits, so the loss is ln(p(1-q)/(q(1-p))). Both
    probabilities are integers out of 2^64, rounded so that it stays within epsilon.
    """

    def _set_thresholds(self, label_threshold: int, other_threshold: int) -> None:
        self.own_threshold, self.other_threshold = label_threshold, other_threshold
        self.p = Fraction(label_threshold, WORDS)
        self.q = Fraction(other_threshold, WORDS)
        self._ratio = self.p * (1 - self.q) / (self.q * (1 - self.p))

    def _draw_rows(self, labels: Labels, entropy: Entropy) -> Bits:
        size = labels.size * self.n_classes
        rows = exact.bernoulli_bits(self.other_threshold, size, entropy)
        rows = rows.reshape(labels.size, self.n_classes)
        label_bits = entropy.words(labels.size) < np.uint64(self.own_threshold)
        rows[np.arange(labels.size), labels] = label_bits
        return rows

    def pair(self) -> ProbabilityPair:
        """Return P(supports the label, not another), and the other way round."""
        return self.p * (1 - self.q), self.q * (1 - self.p)

    def outputs(self) -> Packed:
        """Return all 2^K codes, packed."""
        count = self._check_output_count(1 << self.n_classes)
        places = np.arange(self.n_classes)[::-1]
        return np.packbits(np.arange(count)[:, None] >> places & 1, axis=1)

    def _output_probabilities(
        self, outputs: NDArray[np.uint8]
    ) -> list[ProbabilityPair]:
        pairs = []  # by the number of a code's ones
        for ones in range(self.n_classes + 1):
            none_own = self.q**ones * (1 - self.q) ** (self.n_classes - ones)
            unset = none_own * (1 - self.p) / (1 - self.q)
            pairs.append((unset, none_own * self.p / self.q))
        return [pairs[ones] for ones in np.bitwise_count(outputs).sum(axis=1)]


class UnarySymmetric(_UnaryCode):
    """Flips every bit with probability 1/(1 + e^(eps/2)).

    Each of the two bits that tell labels apart spends epsilon/2. The basic RAPPOR of
    Erlingsson, Pihur & Korolova (2014), "SUE" of Wang et al. (2017), and the encoder of
    Zhao et al. (2025).
    """

    name = "unary_symmetric"

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        keep = exact.logistic_threshold(self.epsilon / 2)
        self._set_thresholds(keep, WORDS - keep)


class UnaryOptimised(_UnaryCode):
    """Sends the label's bit as a fair coin, any other as 1 one time in e^eps + 1.

    The unary code of least variance for a rare label ("OUE", Wang et al. 2017).
    """

    name = "unary_optimised"

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        self._set_thresholds(WORDS // 2, WORDS - exact.logistic_threshold(self.epsilon))


class Unary(_UnaryCode):
    """The unary code with given ``p`` and ``q``, 0 < q < p < 1; epsilon is the claim.

    A pair whose loss ln(p(1-q)/(q(1-p))) exceeds epsilon by more than the rounding of
    p and q is a UserError. ``tight`` says whether the loss reaches epsilon.
    """

    name = "unary"

    def __init__(self, *, epsilon: float, n_classes: int, p: float, q: float) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        validate.fraction(p=p)
        validate.fraction(q=q)
        self._set_thresholds(*_safe_thresholds(Fraction(p), Fraction(q), self.epsilon))
        self.tight = self.worst_log_ratio() >= self.epsilon - 1e-6


def _unary_loss(p: Fraction, q: Fraction) -> float:
    return exact.exact_log(p * (1 - q) / (q * (1 - p)))


def _safe_thresholds(p: Fraction, q: Fraction, epsilon: float) -> tuple[int, int]:
    """Return p down and q up to whole words, within epsilon."""
    least, most = p * (1 - ROUNDING), q * (1 + ROUNDING)
    if least > most and _unary_loss(least, most) > epsilon:
        raise UserError(
            f"p={float(p):g} and q={float(q):g} lose ln(p(1-q)/(q(1-p))) ="
            f" {_unary_loss(p, q):.6g}, more than epsilon, {epsilon:g}; bring them"
            " closer together."
        )
    other_threshold = -(-q * WORDS // 1)
    rest = WORDS - other_threshold
    allowed = exact.logistic_threshold(epsilon, other_threshold, rest)
    label_threshold = min(p * WORDS // 1, allowed)
    if label_threshold <= other_threshold:
        raise UserError(
            f"p={float(p):g} must be above q={float(q):g}, by more than 2^-64."
        )
    return label_threshold, other_threshold


def best_subset_size(epsilon: float, n_classes: int) -> int:
    """Return the set size that distinguishes the true label best.

    It maximises (p - q)^2 / Var(Z_c - Z_j), Z the indicators of the true and another
    label, which rises with w (K - w) / (K + w (e^eps - 1)): over the reals at
    w = K / (1 + e^(eps/2)), so over the integers at one of its two neighbours.
    """
    shrink = math.exp(-epsilon / 2)
    low = math.floor(n_classes * shrink / (1 + shrink))
    near = sorted({max(1, low), min(n_classes - 1, low + 1)})

    def gain(w: int) -> float:
        # Numerator and denominator times e^-eps, which cannot overflow.
        return w * (n_classes - w) / (w + (n_classes - w) * shrink**2)

    return max(near, key=gain)


class SubsetSelection(PackedMechanism):
    """Reports ``omega`` = w of the K labels, among them probably the true one.

    It is in with probability w e^eps / (w e^eps + K - w) (Ye & Barg 2018): iff a 64-bit
    word is below ``threshold``, an integer rounded towards privacy. The others are a
    uniform subset, exactly. ``omega``, between 1 and K - 1, is ``best_subset_size`` by
    default; anything else is a UserError.
    """

    name = "subset_selection"

    def __init__(
        self, *, epsilon: float, n_classes: int, omega: int | None = None
    ) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        if omega is None:
            omega = best_subset_size(self.epsilon, self.n_classes)
        self.omega = validate.at_least(1, omega=omega)
        if self.omega >= self.n_classes:
            raise UserError(
                f"omega is {omega!r}; it must be at most n_classes - 1 ="
                f" {self.n_classes - 1}, or the set says nothing."
            )
        # C(K-1, w-1) sets hold a label and C(K-1, w) do not: they stand as w to K - w.
        rest = self.n_classes - self.omega
        self.threshold = exact.logistic_threshold(self.epsilon, self.omega, rest)
        self.p = Fraction(self.threshold, WORDS)
        self.q = (self.omega - self.p) / (self.n_classes - 1)
        self._ratio = self.p * rest / ((1 - self.p) * self.omega)

    def blanket(self) -> Blanket:
        """Return what all laws have in common: a uniform set."""
        share = self.omega / self.n_classes
        overlap = share * (self.omega - 1) / (self.n_classes - 1)
        return Blanket.two_levels(self.epsilon, share, overlap)

    def _draw_rows(self, labels: Labels, entropy: Entropy) -> Bits:
        inside = entropy.words(labels.size) < np.uint64(self.threshold)
        sizes = self.omega - inside
        rows = exact.random_subsets(sizes, labels, self.n_classes, entropy)
        rows[np.arange(labels.size), labels] = inside
        return rows

    def pair(self) -> ProbabilityPair:
        """Return P(supports the label, not another), and the other way round."""
        other_classes, rest = self.n_classes - 1, self.n_classes - self.omega
        return self.p * rest / other_classes, (1 - self.p) * self.omega / other_classes

    def possible_mask(self, outputs: NDArray[Any]) -> Bits:
        """Return for each output whether it is a set of ``omega`` labels."""
        valid = super().possible_mask(outputs)
        if valid.any():
            for part in exact.row_chunks(len(outputs), self.n_classes):
                ones = np.bitwise_count(outputs[part]).sum(axis=1)
                valid[part] &= ones == self.omega
        return valid

    def outputs(self) -> Packed:
        """Return all sets of ``omega`` labels, packed."""
        count = self._check_output_count(math.comb(self.n_classes, self.omega))
        rows = np.zeros((count, self.n_classes), dtype=bool)
        sets = np.array(list(combinations(range(self.n_classes), self.omega)))
        np.put_along_axis(rows, sets, values=True, axis=1)
        return np.packbits(rows, axis=1)

    def _output_probabilities(
        self, outputs: NDArray[np.uint8]
    ) -> list[ProbabilityPair]:
        other_classes = self.n_classes - 1
        out = (1 - self.p) / math.comb(other_classes, self.omega)
        return [(out, self.p / math.comb(other_classes, self.omega - 1))] * len(outputs)


def _block_size(blocks: int, n_classes: int) -> int:
    """Return the smallest power of two b with blocks (b - 1) >= n_classes."""
    return 1 << (-(-n_classes // blocks)).bit_length()


def best_blocks(epsilon: float, n_classes: int) -> int:
    """Return the number of blocks for which ``decode`` has least variance.

    For one label and all entries that is, but for constants that B does not change,
    ((b - 1)(e^eps - 1) + 2K) (e^eps - 1 + 2B), here times e^(-2 eps).
    """
    shrink = math.exp(-epsilon)

    def spread(blocks: int) -> float:
        rows = _block_size(blocks, n_classes) - 1
        signal = 1 - shrink
        near_and_far = rows * signal + 2 * n_classes * shrink
        return near_and_far * (signal + 2 * blocks * shrink)

    powers = range((n_classes - 1).bit_length() + 1)
    return min((1 << power for power in powers), key=spread)


def _is_negative_entry(rows: Labels, columns: Labels) -> Bits:
    """Return whether the entry of Sylvester's matrix is -1."""
    return np.asarray(np.bitwise_count(rows & columns) & 1 == 1)


class Hadamard(SupportMechanism):
    """Names a column, e^eps times as likely if it supports the label.

    Acharya, Sun & Zhang (2019), the version for every epsilon. The S columns are B
    blocks of b, the smallest power of two with B (b - 1) >= K. A label is a block and a
    row of it other than the first; the b/2 columns of that block where the row is +1
    support it. With one block, S is the smallest power of two above K.
    B is the power of two of least variance, near (e^eps - 1)/2; the paper's own rule,
    2^(ceil(log2 min(e^eps, 2K)) - 1), has more where it differs.
    Outputs are codes (n,) int64 below ``size`` = S.
    """

    name = "hadamard"

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        blocks = best_blocks(self.epsilon, self.n_classes)
        self.block = _block_size(blocks, self.n_classes)
        self.size = blocks * self.block
        self.supporting = self.block // 2
        rest = self.not_supporting = self.size - self.supporting
        self.threshold = exact.logistic_threshold(self.epsilon, self.supporting, rest)
        inside = Fraction(self.threshold, WORDS)
        self._high, self._low = inside / self.supporting, (1 - inside) / rest
        self._ratio = self._high / self._low

    def blanket(self) -> Blanket:
        """Return what all laws have in common: a uniform column.

        Two labels of one block share half of what supports them, others nothing.
        """
        share, blocks = self.supporting / self.size, self.n_classes > self.block - 1
        return Blanket.two_levels(self.epsilon, share, 0 if blocks else share / 2)

    def _locate_labels(self, labels: Labels) -> tuple[Labels, Labels]:
        block, row = np.divmod(labels, self.block - 1)
        return block, row + 1

    def _draw(self, values: Labels, entropy: Entropy) -> Labels:
        inside = entropy.words(values.size) < np.uint64(self.threshold)
        rank = np.empty(values.size, dtype=np.int64)
        for side, count in ((inside, self.supporting), (~inside, self.not_supporting)):
            n = int(np.count_nonzero(side))
            rank[side] = exact.uniform_below(count, n, entropy)
        block, row = self._locate_labels(values)
        # Ranks from b/2 on count the columns of the other blocks, the next one first.
        away = rank - self.supporting
        # The column of a rank among those with the wanted sign, half of them for every
        # row but the first. The rank's bits are the column's, less the one at the row's
        # lowest set bit: that makes the parity right.
        near, lowest = np.where(away < 0, rank, 0), row & -row
        column = ((near & -lowest) << 1) | (near & (lowest - 1))
        wrong = _is_negative_entry(row, column) == inside
        column |= np.where(wrong, lowest, 0)
        offset = np.where(away < 0, column, self.block + away)
        return (block * self.block + offset) % self.size

    def possible_mask(self, outputs: NDArray[Any]) -> Bits:
        """Say for each output whether it is a column."""
        return valid_codes(outputs, self.size)

    def outputs(self) -> Labels:
        """Return the columns."""
        return np.arange(self._check_output_count(self.size))

    def _label_signs(self, outputs: Labels, labels: Labels) -> NDArray[np.int8]:
        """Return the label's row at the output, 0 in another block."""
        block, row = self._locate_labels(labels)
        theirs, column = np.divmod(outputs, self.block)
        signs = 1 - 2 * _is_negative_entry(row, column).astype(np.int8)
        return np.asarray(signs * (theirs == block), dtype=np.int8)

    def _supports(self, outputs: Labels, labels: Labels) -> Bits:
        return self._label_signs(outputs, labels) > 0

    def _support_table(self, outputs: Labels) -> Bits:
        return self._supports(outputs[:, None], np.arange(self.n_classes))

    def _output_probabilities(self, outputs: Labels) -> list[ProbabilityPair]:
        return [(self._low, self._high)] * outputs.size

    @property
    def _sign_gain(self) -> Fraction:
        """The mean of the label's own sign; that of any other label is 0."""
        return self.supporting * (self._high - self._low)

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the unbiased estimate sign/gain, (n, n_classes)."""
        labels, factor = np.arange(self.n_classes), float(1 / self._sign_gain)

        def block_estimate(rows: NDArray[Any]) -> FloatArray:
            return np.asarray(self._label_signs(rows[:, None], labels) * factor)

        return fill_in_blocks(outputs, self.n_classes, block_estimate)

    def pair(self) -> ProbabilityPair:
        """Return P(supports the label, not another), and the other way round.

        Rows of one block are orthogonal; labels of two blocks share no column.
        """
        near = self.block > 2
        columns = self.supporting // 2 if near else self.supporting
        return columns * self._high, columns * self._low

    def pair_variance(self) -> Fraction:
        """Return the variance of the difference of two decoded numbers.

        The mean over all pairs of labels. Signs of two labels have no covariance: in
        one block their rows are orthogonal, in two blocks one of them is 0.
        """
        blocks = np.bincount(self._locate_labels(np.arange(self.n_classes))[0])
        pairs = self.n_classes * (self.n_classes - 1)
        near = Fraction(int((blocks * (blocks - 1)).sum()), pairs)
        same, far = self.supporting * (self._high + self._low), self.block * self._low
        return (same + near * same + (1 - near) * far) / self._sign_gain**2 - 1

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of ``decode``, (n, n_classes).

        A sign is not 0 with probability P(own block) for labels of the same block and
        with probability b ``low`` for others; only the label's own has a mean.
        """
        labels, _ = self.clip(x)
        same = self.supporting * (self._high + self._low)
        square, far_share = self._sign_gain**2, self.block * self._low
        label_variance, near = float(same / square - 1), float(same / square)
        far = float(far_share / square)
        label_blocks, _ = self._locate_labels(labels)
        class_blocks, _ = self._locate_labels(np.arange(self.n_classes))
        spread = np.where(label_blocks[:, None] == class_blocks, near, far)
        return np.where(self._one_hot(labels), label_variance, spread)
