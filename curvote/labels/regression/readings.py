"""Noised numeric labels: what is public about them, how they are read, squared errors.

A reading knows the mechanism's exact law, so the noise's mean and variance are known.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from curvote.errors import UserError
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.rr_on_bins import RROnBins
from curvote.validate import FloatArray

# Below it the square of an output says nothing of the label's.
_LEAST_SLOPE = 1e-6


class Reading(Protocol):
    """A reading of one mechanism's outputs; squares are about ``centre``."""

    @property
    def centre(self) -> float:
        """Return the number about which squares are taken."""
        ...

    def numbers(self, outputs: FloatArray) -> FloatArray:
        """Return an estimate of each label."""
        ...

    def squares(self, outputs: FloatArray) -> FloatArray:
        """Return an estimate of each (label - centre)^2."""
        ...

    def variance(self, labels: FloatArray) -> FloatArray:
        """Return the exact variance of ``numbers`` for each label."""
        ...


class UnbiasedReading:
    """Reads a mechanism whose mean is the label, and its variance a + b label^2.

    Piecewise, hybrid and Duchi et al. are such. The output squared has the mean
    a + (1 + b) label^2, so squares are unbiased as well. With b = -1 (Duchi et al., and
    the hybrid below epsilon 0.61, of two outputs only) nothing is said of the square.
    """

    centre = 0.0

    def __init__(self, mechanism: ScalarMechanism) -> None:
        self.mechanism = mechanism
        at_0, at_1 = mechanism.variance(np.array([0.0, 1.0])).tolist()
        self._least, self._slope = at_0, 1 + at_1 - at_0

    def numbers(self, outputs: FloatArray) -> FloatArray:
        """Return the outputs themselves."""
        return outputs

    def squares(self, outputs: FloatArray) -> FloatArray:
        """Return (output^2 - a)/(1 + b); where b is -1, a UserError."""
        if self._slope < _LEAST_SLOPE:
            raise UserError(
                f"{self.mechanism.name} at epsilon {self.mechanism.epsilon:g} has two"
                " outputs, which say nothing of a label's square; a squared error"
                " needs labels noised by piecewise."
            )
        return np.asarray((outputs**2 - self._least) / self._slope)

    def variance(self, labels: FloatArray) -> FloatArray:
        """Return the mechanism's own variance."""
        return self.mechanism.variance(labels)


class CalibratedReading:
    """Reads randomized response on bins, by the prior that its bins were made for.

    The published answer is the mean of the labels that give it (Ghazi et al. 2022), so
    a regression on answers is shrunk towards the mean of all, at epsilon 1 to half and
    less. Here the answers are stretched until they have, under the prior, the mean of
    the labels and slope 1 on them: a regression linear in the label is then right.
    Squares, about the prior's mean, are read from the one-hot bins, each at the prior's
    mean square in it.
    """

    def __init__(self, mechanism: RROnBins, prior: FloatArray) -> None:
        self.mechanism = mechanism
        self.prior, self.cells = prior, cell_middles(len(prior))

    @cached_property
    def centre(self) -> float:
        """Return the mean label under the prior."""
        return float(self.prior @ self.cells)

    @cached_property
    def _mean_and_slope(self) -> tuple[float, float]:
        """Return the mean answer, and the slope of labels on answers."""
        answers, off = self.mechanism.mean(self.cells), self.cells - self.centre
        mean = float(self.prior @ answers)
        shared = float(self.prior @ (off * (answers - mean)))
        return mean, float(self.prior @ off**2) / shared if shared > 0 else 0.0

    def numbers(self, outputs: FloatArray) -> FloatArray:
        """Return the stretched answers."""
        mean, slope = self._mean_and_slope
        return np.asarray(self.centre + slope * (outputs - mean))

    def squares(self, outputs: FloatArray) -> FloatArray:
        """Return the decoded one-hot bins times the mean squares of their labels."""
        bins, k = self.mechanism.bins(self.cells), self.mechanism.k
        squares = (self.cells - self.centre) ** 2
        share = np.bincount(bins, self.prior, k)
        total = np.bincount(bins, self.prior * squares, k)
        mean = np.divide(total, share, out=np.zeros(k), where=share > 0)
        keep, move = float(self.mechanism.keep), float(self.mechanism.move)
        bin_squares = mean[np.searchsorted(self.mechanism.outputs, outputs)]
        return np.asarray((bin_squares - move * mean.sum()) / (keep - move))

    def variance(self, labels: FloatArray) -> FloatArray:
        """Return the answers' exact variance times the squared stretch."""
        return np.asarray(
            self.mechanism.variance(labels) * self._mean_and_slope[1] ** 2
        )


def cell_middles(m: int) -> FloatArray:
    """Return the middles of m equal cells of [-1, 1]."""
    return np.asarray((2 * np.arange(m) + 1) / m - 1)


def make_reading(mechanism: ScalarMechanism, prior: FloatArray | None) -> Reading:
    """Return the reading of a mechanism's outputs; on bins a prior is needed."""
    if isinstance(mechanism, RROnBins):
        if prior is None:
            raise UserError("randomizer rr_on_bins is read by a prior; none is given.")
        return CalibratedReading(mechanism, prior)
    return UnbiasedReading(mechanism)
