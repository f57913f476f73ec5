"""k-ary randomized response: keep the label, or name any other one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy
from curvote.mechanisms import exact
from curvote.mechanisms.bits import Bits, Labels
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.labels import Chances, PureMechanism, are_codes


class KRR(PureMechanism):
    """Keeps a label with probability e^eps/(e^eps + K - 1), else names another one.

    All others are equally likely (Kairouz, Bonawitz & Ramage 2016), drawn exactly. The
    label is kept iff a 64-bit word is below ``threshold``, an integer rounded towards
    privacy. Outputs are codes (n,) int64.
    """

    name = "k_rr"

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        others = self.n_classes - 1
        self.threshold = exact.logistic_threshold(self.epsilon, outside=others)
        self.p = Fraction(self.threshold, WORDS)
        self.q = (1 - self.p) / others
        self._ratio = self.p / self.q

    def _draw(self, values: Labels, entropy: Entropy) -> Labels:
        out = values.copy()
        moved = np.flatnonzero(entropy.words(out.size) >= np.uint64(self.threshold))
        others = exact.below(self.n_classes - 1, moved.size, entropy)
        out[moved] = others + (others >= values[moved])
        return out

    def pair(self) -> Chances:
        """Return the chances of the label, and of another one."""
        return self.p, self.q

    def possible(self, outputs: NDArray[Any]) -> Bits:
        """Say for each output whether it is a label."""
        return are_codes(outputs, self.n_classes)

    def outputs(self) -> Labels:
        """Return the labels."""
        return np.arange(self._few(self.n_classes))

    def _supports(self, outputs: Labels, labels: Labels) -> Bits:
        return np.asarray(outputs == labels)

    def _table(self, outputs: Labels) -> Bits:
        return np.asarray(outputs[:, None] == np.arange(self.n_classes))

    def _chances(self, outputs: Labels) -> list[Chances]:
        return [(self.q, self.p)] * outputs.size
