"""Randomized response: on signs, on labels, on bins, and with a public prior."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms import exact
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.finite import FiniteMechanism
from curvote.validate import FloatArray


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
