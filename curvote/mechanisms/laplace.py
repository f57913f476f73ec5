"""Laplace and exponential mechanisms on [-1, 1], exact on grids."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact
from curvote.mechanisms.base import FiniteMechanism, ScalarMechanism
from curvote.mechanisms.exact import (
    GRID_BITS,
    GRID_STEP,
    MAX_BITS,
    WORDS,
    DiscreteLaplace,
)

# The grid points of -1 and 1 lie 2^21 steps apart: the sensitivity.
RANGE_BITS = GRID_BITS + 1


def _to_steps(values: FloatArray) -> FloatArray:
    """Return the grid point of each value, counted in steps; halves go to even."""
    return np.asarray(np.rint(values / GRID_STEP))


class Laplace(ScalarMechanism):
    """Adds Laplace noise of scale 2/epsilon to a value in [-1, 1] (Dwork et al. 2006).

    The value is rounded to the grid of step 2^-20 (halves to even) before the noise,
    an exact discrete Laplace on the same grid, so the output's low bits say nothing
    (Mironov 2012). P(k) is proportional to exp(-|k| s/t) with t a power of two and
    s = floor(epsilon t / 2^21), at most 2^31 and of 31 bits where epsilon >= 1: the
    loss 2^21 s/t falls short of epsilon by at most 2^-30 max(1, epsilon). Above 2^30
    epsilon is taken as 2^30, where the noise is 0 but for a probability of e^-511.
    """

    name = "laplace"
    unbiased = True

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        target = min(self.epsilon, 2.0**30)
        bits = MAX_BITS - max(0, math.frexp(target)[1])
        s = math.floor(math.ldexp(target, bits - RANGE_BITS))
        self.noise = DiscreteLaplace(s, bits)
        # Cutting the output off where the noise is still exact is post-processing: it
        # makes the draws that no 64 bits can hold (probability e^-2047) harmless.
        self.limit = self.noise.exact_below - (1 << GRID_BITS)

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        out = _to_steps(values)
        out += self.noise.sample(values.size, entropy).reshape(values.shape)
        np.clip(out, -self.limit, self.limit, out=out)
        out *= GRID_STEP
        return out

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each output whether it is a grid point within the cut."""
        bound = 2 * self.limit * GRID_STEP  # what lies beyond may overflow when divided
        clipped = np.clip(np.asarray(outputs, dtype=np.float64), -bound, bound)
        steps = clipped / GRID_STEP
        return np.asarray((steps == np.rint(steps)) & (np.abs(steps) <= self.limit))

    def tail_bound(self, probability: float) -> float:
        """Return the size that an output exceeds with this probability at most.

        q = e^-g; the k is a whole number of steps.
        """
        odds = 2 / validate.fraction(probability=probability)
        rest = math.log(odds / (1 + math.exp(-self.noise.rate)))
        beyond = (1 << GRID_BITS) + math.ceil(rest / self.noise.rate)
        return min(beyond, self.limit) * GRID_STEP

    def _input_steps(self, x: ArrayLike) -> FloatArray:
        clipped, _ = self.clip(x)
        return _to_steps(clipped)

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the grid point of each input, at most 2^-21 from it."""
        return self._input_steps(x) * GRID_STEP

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return 2 e^-g / (1 - e^-g)^2 in squared steps, g = s/t: about 8/epsilon^2."""
        return np.full(np.shape(x), self.noise.variance * GRID_STEP**2)

    def cdf(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the exact P(output <= at) for each input."""
        steps = np.floor(np.asarray(at) / GRID_STEP)
        return self.noise.cdf(steps - self._input_steps(x))

    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2) for grid points ``at``."""
        steps = np.asarray(at) / GRID_STEP
        away, away2 = (np.abs(steps - self._input_steps(value)) for value in (x, x2))
        return np.asarray((away2 - away) * self.noise.rate)

    def worst_log_ratio(self) -> float:
        """Return the exact loss: the span in steps times s/t, at most epsilon."""
        span = self._input_steps(self.high) - self._input_steps(self.low)
        return float(span * self.noise.rate)


# The mean count on one side; its spread then stays far below 2^63 as well.
LARGEST_MEAN = 2.0**62


def draw_noise_sums(
    n: int, noise: DiscreteLaplace, size: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return ``size`` independent sums of ``n`` draws of ``noise``.

    A discrete Laplace draw is the difference of two geometric ones, P(k) = (1 - a) a^k
    with a = e^-rate, as sum_k (1 - a)^2 a^(2k + |m|) = a^|m| (1 - a)/(1 + a). So the
    sum of n is the difference of two negative binomial ones, each a Poisson count whose
    mean is gamma distributed with shape n and scale a/(1 - a). ``n`` is at least 1.
    Where the mean count n a/(1 - a) exceeds 2^62, 64 bits may not hold it: a UserError.
    """
    count = validate.at_least(1, n=n)
    scale = math.exp(-noise.rate) / -math.expm1(-noise.rate)
    if count * scale > LARGEST_MEAN:
        raise UserError(
            f"n is {n}, and one draw has a scale of {scale:.3g} steps: their sum may"
            f" not fit 64 bits. n times the scale must not exceed {LARGEST_MEAN:.3g}."
        )
    up, down = generator.poisson(generator.gamma(count, scale, (2, size)))
    return np.asarray(up - down, dtype=np.int64)


MOST_POINTS = 1024
_SPARE_BITS = 256


class Exponential(FiniteMechanism):
    """Answers a point y of a grid with probability proportional to e^(-r |x - y|).

    The grid has ``size`` points (2 to 1024) from -1 to 1; x is rounded to it (halves to
    even). The score -|x - y| with r = epsilon/2 has its worst ratio, e^epsilon, between
    the two ends, whose sums of weights are equal; McSherry & Talwar's general rate
    (2007; Zheng & Hu, definition 13, whose score has the wrong sign) spends half of it.
    Row x of ``counts`` says how many of 2^64 words give each y: rounded up, and the
    rest is y = x. So the ratios are rounded towards privacy. The output is biased.
    """

    name = "exponential"
    unbiased = False

    def __init__(self, *, epsilon: float, size: int = 101) -> None:
        super().__init__(epsilon=epsilon)
        self.size = validate.at_least(2, size=size)
        if self.size > MOST_POINTS:
            raise UserError(f"size is {size!r}; it must be at most {MOST_POINTS}.")
        points = np.arange(self.size)
        self.outputs = (2 * points - (self.size - 1)) / (self.size - 1)
        # 2^256 e^(-epsilon d/(size - 1)), rounded up, for each distance d.
        numerator, denominator = self.epsilon.as_integer_ratio()
        weights, denominator = [1 << _SPARE_BITS], denominator * (self.size - 1)
        for d in range(1, self.size):
            power = exact.exp_bounds(numerator * d, denominator, _SPARE_BITS)
            weights.append(power[1])
        rows = []
        for i in range(self.size):
            relative = [weights[abs(i - j)] for j in range(self.size)]
            total = sum(relative)
            row = [-(-(weight << exact.WORD_BITS) // total) for weight in relative]
            row[i] += WORDS - sum(row)
            rows.append(row)
        self.counts = np.array(rows, dtype=np.uint64)
        # Each row's running sums, padded to a power of two.
        shape = self.size, 1 << (self.size - 1).bit_length()
        self._bounds = np.full(shape, WORDS - 1, dtype=np.uint64)
        self._bounds[:, : self.size - 1] = np.cumsum(self.counts[:, :-1], axis=1)

    def _grid_rows(self, values: FloatArray) -> NDArray[np.int64]:
        return np.asarray(np.rint((values + 1) / 2 * (self.size - 1)).astype(np.int64))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        words = entropy.words(values.size).reshape(values.shape)
        places = self._grid_rows(values) * (half := self._bounds.shape[1])
        # Bisection: how many of the row's bounds has the word reached?
        while half := half // 2:
            places += half * (self._bounds.take(places + half - 1) <= words)
        places %= self._bounds.shape[1]
        return np.asarray(self.outputs.take(places, mode="clip"))

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each output, [..., size], for each input [...]."""
        return np.asarray(self.counts[self._grid_rows(self.clip(x)[0])] / float(WORDS))

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of the output, from the channel of the grid points."""
        return np.asarray(super().mean(self.outputs)[self._grid_rows(self.clip(x)[0])])

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of the output, from the channel of the grid points."""
        rows = self._grid_rows(self.clip(x)[0])
        return np.asarray(super().variance(self.outputs)[rows])

    def worst_ratio(self) -> Fraction:
        """Return the largest ratio of two counts in one column."""
        columns = zip(self.counts.max(axis=0), self.counts.min(axis=0), strict=True)
        return max(Fraction(int(most), int(least)) for most, least in columns)
