"""Subset selection: a set of labels that is likelier to hold the true one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms import bits, exact
from curvote.mechanisms.bits import Bits, Labels, Packed
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.labels import PackedMechanism, ProbabilityPair


def best_subset_size(epsilon: float, n_classes: int) -> int:
    """Return the set size that distinguishes the true label best.

    It maximises (p - q)^2 / Var(Z_c - Z_j), Z the indicators of the true and another
    label, which rises with w (K - w) / (K + w (e^eps - 1)): over the reals at
    w = K / (1 + e^(eps/2)), so over the integers at one of its two neighbours.
    """
    shrink = math.exp(-epsilon / 2)
    low = math.floor(n_classes * shrink / (1 + shrink))
    near = sorted({max(1, low), min(n_classes - 1, low + 1)})
    # Numerator and denominator times e^-eps, which cannot overflow.
    return max(
        near, key=lambda w: w * (n_classes - w) / (w + (n_classes - w) * shrink**2)
    )


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

    def _draw_rows(self, labels: Labels, entropy: Entropy) -> Bits:
        inside = entropy.words(labels.size) < np.uint64(self.threshold)
        rows = bits.random_subsets(self.omega - inside, labels, self.n_classes, entropy)
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
            for part in bits.row_chunks(len(outputs), self.n_classes):
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
