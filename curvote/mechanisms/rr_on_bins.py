"""Randomized response on the bins of a number, with public answers."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.bits import Labels
from curvote.mechanisms.finite import FiniteMechanism
from curvote.mechanisms.k_rr import KRR
from curvote.validate import FloatArray


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
