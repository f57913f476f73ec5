"""Frequency oracles: unary codes, subset selection and Hadamard response."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms import bits, exact
from curvote.mechanisms.bits import Bits, Labels, Packed
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.labels import PackedMechanism, ProbabilityPair

# What computing p and q in float64 may have added to the loss is no user's mistake.
ROUNDING = Fraction(1, 1 << 50)


class _UnaryCode(PackedMechanism):
    """The label's bit is 1 with probability p, each other bit with probability q.

    Replacing a label changes two bits, so the loss is ln(p(1-q)/(q(1-p))). Both
    probabilities are integers out of 2^64, rounded so that it stays within epsilon.
    """

    def _set_thresholds(self, label_threshold: int, other_threshold: int) -> None:
        self.own_threshold, self.other_threshold = label_threshold, other_threshold
        self.p, self.q = (
            Fraction(label_threshold, WORDS),
            Fraction(other_threshold, WORDS),
        )
        self._ratio = self.p * (1 - self.q) / (self.q * (1 - self.p))

    def _draw_rows(self, labels: Labels, entropy: Entropy) -> Bits:
        size = labels.size * self.n_classes
        rows = bits.bernoulli_bits(self.other_threshold, size, entropy)
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
        pairs = [self._code_probabilities(ones) for ones in range(self.n_classes + 1)]
        return [pairs[ones] for ones in np.bitwise_count(outputs).sum(axis=1)]

    def _code_probabilities(self, ones: int) -> ProbabilityPair:
        """Return P(code | label) of a code with so many ones, by label's bit."""
        zeros = self.n_classes - ones
        none_own = self.q**ones * (1 - self.q) ** zeros
        return (
            none_own * (1 - self.p) / (1 - self.q),
            none_own * self.p / self.q,
        )


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
            " closer"
            " together."
        )
    other_threshold = -(-q * WORDS // 1)
    allowed = exact.logistic_threshold(
        epsilon, inside=other_threshold, outside=WORDS - other_threshold
    )
    label_threshold = min(p * WORDS // 1, allowed)
    if label_threshold <= other_threshold:
        raise UserError(
            f"p={float(p):g} must be above q={float(q):g}, by more than 2^-64."
        )
    return label_threshold, other_threshold
