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
from curvote.mechanisms.labels import ProbabilityPair, PureMechanism, valid_codes


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
