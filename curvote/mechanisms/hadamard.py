"""Hadamard response: one column of a Hadamard matrix, in log2(K) + 2 bits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.mechanisms import exact
from curvote.mechanisms.bits import Bits, Labels
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.labels import (
    ProbabilityPair,
    SupportMechanism,
    fill_in_blocks,
    valid_codes,
)
from curvote.validate import FloatArray


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


def _ranked_column(rows: Labels, rank: Labels, odd: Bits) -> Labels:
    """Return the column of a rank among those with the wanted sign.

    Each are half of the columns, for every row but the first. The rank's bits are the
    column's, less the one at the row's lowest set bit: that makes the parity right.
    """
    lowest = rows & -rows
    column = ((rank & -lowest) << 1) | (rank & (lowest - 1))
    return column | np.where(_is_negative_entry(rows, column) != odd, lowest, 0)


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

    def _locate_labels(self, labels: Labels) -> tuple[Labels, Labels]:
        """Return the block and the row of each label."""
        block, row = np.divmod(labels, self.block - 1)
        return block, row + 1

    def _draw(self, values: Labels, entropy: Entropy) -> Labels:
        inside = entropy.words(values.size) < np.uint64(self.threshold)
        rank = np.empty(values.size, dtype=np.int64)
        for side, count in ((inside, self.supporting), (~inside, self.not_supporting)):
            rank[side] = exact.uniform_below(
                count, int(np.count_nonzero(side)), entropy
            )
        block, row = self._locate_labels(values)
        # Ranks from b/2 on count the columns of the other blocks, the next one first.
        away = rank - self.supporting
        column = _ranked_column(row, np.where(away < 0, rank, 0), ~inside)
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
        return fill_in_blocks(
            outputs,
            self.n_classes,
            lambda rows: self._label_signs(rows[:, None], labels) * factor,
        )

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
        label_variance, near, far = (
            float(second / self._sign_gain**2 - mean)
            for second, mean in ((same, 1), (same, 0), (self.block * self._low, 0))
        )
        label_blocks, class_blocks = (
            self._locate_labels(labels)[0],
            self._locate_labels(np.arange(self.n_classes))[0],
        )
        spread = np.where(label_blocks[:, None] == class_blocks, near, far)
        return np.where(self._one_hot(labels), label_variance, spread)
