"""Twins of mechanisms with few outputs: thresholds and budgets that are off."""

from __future__ import annotations

import numpy as np

from curvote.entropy import Entropy
from curvote.mechanisms import bits
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.mechanisms.bits import Bits, Labels
from curvote.mechanisms.subset_selection import SubsetSelection
from curvote.mechanisms.unary import UnarySymmetric
from curvote.validate import FloatArray


class OffByOneThreshold(BinaryRR):
    """Keeps the label for one word in 2^64 too many."""

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        self.threshold += 1


class OffByOneComparison(BinaryRR):
    """Declares the right threshold, and compares with <= instead of <."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        words = entropy.words(values.size).reshape(values.shape)
        return np.where(words <= np.uint64(self.threshold), values, -values)


class UnaryFullEpsilon(UnarySymmetric):
    """Spends the full epsilon on each bit; two labels differ in two bits."""

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=2 * epsilon, n_classes=n_classes)
        self.epsilon = epsilon


class SubsetWithLabel(SubsetSelection):
    """Always reports a set that holds the true label."""

    def _draw_rows(self, labels: Labels, entropy: Entropy) -> Bits:
        sizes = np.full(labels.size, self.omega - 1)
        rows = bits.random_subsets(sizes, labels, self.n_classes, entropy)
        rows[np.arange(labels.size), labels] = True
        return rows
