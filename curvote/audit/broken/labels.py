"""Twins of label encoders: what tells two labels apart is counted by half."""

from __future__ import annotations

from fractions import Fraction

from curvote.mechanisms.alibi import Alibi
from curvote.mechanisms.unary import UnarySymmetric


class AlibiHalfScale(Alibi):
    """Noise of scale 1/epsilon: takes 1 for the sensitivity of a one-hot label."""

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        self.noise = Alibi(epsilon=2 * epsilon, n_classes=n_classes).noise

    def worst_log_ratio(self) -> float:
        """Return the loss of one of the two numbers that differ."""
        return super().worst_log_ratio() / 2


class OneBitCounted(UnarySymmetric):
    """Flips bits at the full epsilon each, and counts one of the two that differ."""

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=2 * epsilon, n_classes=n_classes)
        self.epsilon = epsilon

    def worst_ratio(self) -> Fraction:
        """Return the ratio of one bit."""
        return self.p / self.q
