"""ALIBI label mechanism: Laplace noise on one-hot labels, and its soft labels."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms import bits
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.bits import Bits, Labels
from curvote.mechanisms.exact import MAX_BITS, DiscreteLaplace
from curvote.mechanisms.labels import fill_in_blocks
from curvote.mechanisms.soft_labels import SoftMoments, soft_label_moments
from curvote.validate import FloatArray

# The 1 of a one-hot label, counted in steps.
ONE_HOT_STEPS = 1 << 6
# Two labels differ by 1 in two coordinates: the sensitivity in steps is 2 ONE = 2^7.
_RANGE_BITS = 7
# Noise beyond so many of its scales, once in 2^64 numbers, is cut off.
_MAX_SCALES = 64 * math.log(2)


def _steps_below_max(rows: NDArray[Any]) -> NDArray[Any]:
    """Return how many steps each number is below its row's largest."""
    inside = np.clip(rows, 0, ONE_HOT_STEPS)
    return np.asarray(inside.max(axis=1, keepdims=True) - inside)


class Alibi(LabelMechanism):
    """Adds Laplace noise of scale 2/epsilon to each number of the one-hot label.

    Malek Esmaeili et al. (2021), algorithm 3; Zhao et al. (2025), (29). Outputs are
    whole steps of 2^-6, (n, n_classes), of the smallest signed type that holds
    [-``limit``, ``limit``]. The noise is exact on the same grid: P(k) is proportional
    to exp(-|k| s/t) with t a power of two and s = floor(epsilon t / 2^7), so the loss
    2^7 s/t is at most epsilon. Cutting off at ``limit`` is post-processing: it loses
    nothing more and changes no ratio of likelihoods. ``decode`` is the soft label made
    unbiased. Above 2^30 epsilon is taken as 2^30, where the noise is practically 0.
    """

    name = "alibi"
    unbiased = True

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        target = min(self.epsilon, 2.0**30)
        digits = MAX_BITS - max(0, math.frexp(target)[1])
        s = math.floor(math.ldexp(target, digits - _RANGE_BITS))
        self.noise = DiscreteLaplace(s, digits)
        self.limit = ONE_HOT_STEPS + math.ceil(_MAX_SCALES / self.noise.rate)
        self.dtype = np.min_scalar_type(-max(self.limit, 1 << 8))

    @property
    def scale(self) -> float:
        """The scale of the noise in the one-hot label's unit: 2/epsilon."""
        return 1 / (self.noise.rate * ONE_HOT_STEPS)

    def _draw(self, values: Labels, entropy: Entropy) -> NDArray[Any]:
        out = np.empty((values.size, self.n_classes), dtype=self.dtype)
        for rows_slice in bits.row_chunks(values.size, self.n_classes):
            labels = values[rows_slice]
            rows = self.noise.sample(labels.size * self.n_classes, entropy)
            rows = rows.reshape(labels.size, self.n_classes)
            rows[np.arange(labels.size), labels] += ONE_HOT_STEPS
            out[rows_slice] = np.clip(rows, -self.limit, self.limit, out=rows)
        return out

    def possible_mask(self, outputs: NDArray[Any]) -> Bits:
        """Say for each output whether it is a row of steps that the cut leaves."""
        if outputs.dtype.kind not in "iu" or outputs.shape[1:] != (self.n_classes,):
            return np.zeros(outputs.shape[:1], dtype=bool)
        inside = (outputs >= -self.limit) & (outputs <= self.limit)
        return np.asarray(inside.all(axis=1))

    def tail_bound(self, probability: float) -> float:
        """Return 1 in steps and the k with P(|noise| > k) at most so large."""
        odds = 2 / validate.fraction(probability=probability)
        rest = math.log(odds / (1 + math.exp(-self.noise.rate)))
        return min(ONE_HOT_STEPS + math.ceil(rest / self.noise.rate), self.limit)

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of ``decode``: the one-hot labels, (n, n_classes)."""
        labels, _ = self.clip(x)
        is_label = labels[:, None] == np.arange(self.n_classes)
        return np.asarray(is_label, dtype=np.float64)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of ``decode``, (n, n_classes)."""
        moments = self._soft_moments
        return (
            np.where(self.mean(x) == 1, moments.label_variance, moments.other_variance)
            / moments.gap**2
        )

    @property
    def _soft_moments(self) -> SoftMoments:
        return soft_label_moments(self.noise.rate, ONE_HOT_STEPS, self.n_classes)

    def pair_variance(self) -> float:
        """Return the variance of the difference of two decoded numbers."""
        return self._soft_moments.pair / self._soft_moments.gap**2

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        rows, (labels, _) = np.asarray(at), self.clip(x)
        label_steps = rows[np.arange(len(rows)), labels]
        return np.asarray(2 * self.noise.rate * np.clip(label_steps, 0, ONE_HOT_STEPS))

    def worst_log_ratio(self) -> float:
        """Return the loss of both numbers that differ, 2^7 s/t: at most epsilon.

        Its exponential is no fraction: ``worst_ratio`` is None.
        """
        return float(Fraction(self.noise.s << _RANGE_BITS, 1 << self.noise.bits))

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the unbiased soft labels, (n, n_classes): rows sum to 1.

        (s - b)/(a - b): a is the mean of the label's own, b that of another class.
        """
        gap = self._soft_moments.gap * self.n_classes
        # As b = (1 - (a - b))/K, only s - 1/K is asked for: from weights less 1.
        relative_weights = np.expm1(-2 * self.noise.rate * np.arange(ONE_HOT_STEPS + 1))

        def decode_block(rows: NDArray[Any]) -> FloatArray:
            weights = relative_weights[_steps_below_max(rows)]
            mean = weights.mean(axis=1, keepdims=True)
            return np.asarray(
                (weights - mean) / (gap * (1 + mean)) + 1 / self.n_classes
            )

        return fill_in_blocks(outputs, self.n_classes, decode_block)

    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return P(output | label) up to a factor a row, (n, n_classes).

        Two labels differ in |o_c| - |o_c - 1| only, which is 2 o_c - 1 within [0, 1].
        """
        weights = np.exp(-2 * self.noise.rate * np.arange(ONE_HOT_STEPS + 1))
        return fill_in_blocks(
            outputs, self.n_classes, lambda rows: weights[_steps_below_max(rows)]
        )

    def soft(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the posterior soft labels (29), (n, n_classes)."""
        weights = self.likelihood(outputs)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def cdf(self, x: ArrayLike, at: NDArray[Any]) -> FloatArray:
        """Return P(number <= at) for each number of each output, (n, n_classes)."""
        below = self.noise.cdf(
            np.asarray(at, dtype=np.float64) - ONE_HOT_STEPS * self.mean(x)
        )
        reached = np.where(at >= self.limit, 1.0, below)
        return np.where(at < -self.limit, 0.0, reached)

    def _refuse_listing(self) -> NoReturn:
        raise UserError(
            f"{self.name} has more than {self.most_outputs} outputs, too many to write"
            " out."
        )

    def outputs(self) -> NDArray[Any]:
        """Refuse (UserError) to list the outputs."""
        self._refuse_listing()

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Refuse (UserError) to list the probabilities of all outputs."""
        del x
        self._refuse_listing()

    def channel(self) -> list[list[Fraction]]:
        """Refuse (UserError) to write out the channel."""
        self._refuse_listing()
