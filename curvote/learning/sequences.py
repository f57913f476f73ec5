"""Confidence sequences and alarms: statements that hold at every look, all together.

An answer is a bounded number whose mean may change from one answer to the next. Each
process here is a mixture, over rates lambda, of products that do not grow in the mean;
by Ville's inequality it ever exceeds 1/error with probability at most ``error``. So
nobody pays for looking again (Howard, Ramdas, McAuliffe & Sekhon 2021; for the alarm
Shin, Ramdas & Rinaldo 2024, with weights on the beginnings, which bound false alarms
for ever). The intervals are for the mean of all answers so far, whatever its parts do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray

# Rates are for 2^-12 to 2^16 times the number of answers that is expected, each for
# twice the one before; steps of 2^(1/2) made widths less than 1 % smaller, on Gaussian
# walks that nothing is reported on.
_OCTAVES: Final = np.arange(-12, 17)
# Where nobody says how many answers come, an interval is the narrowest where that of a
# fixed sample reaches so far to either side: narrower ones decide, wider ones do not.
TARGET_WIDTH: Final = 0.05
_HALVINGS: Final = 60


def _rates(
    expected: float, spread: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return rates and the logarithms of their weights, which fall from the expected.

    ``spread`` is the variance of one answer. The best rate for n answers is
    sqrt(2 ln(level) / (n spread)). A weight of 1/(1 + j^2) costs little j octaves away.
    """
    best = np.sqrt(2 * math.log(level) / (expected * 2.0**_OCTAVES * spread))
    weights = 1 / (1.0 + _OCTAVES**2)
    return best, np.log(weights / weights.sum())


def _log_sum(terms: FloatArray) -> FloatArray:
    """Return ln sum exp over the last axis."""
    top = terms.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(terms - top).sum(axis=-1)))


def _largest(
    holds: Callable[[FloatArray], NDArray[np.bool_]], start: FloatArray, end: FloatArray
) -> FloatArray:
    """Return the end of ``start`` to ``end`` up to which ``holds``, from outside."""
    for _ in range(_HALVINGS):
        middle = (start + end) / 2
        inside = holds(middle)
        start, end = np.where(inside, middle, start), np.where(inside, end, middle)
    return end


def share_interval(
    n: ArrayLike, total: ArrayLike, error: float, expected: float
) -> tuple[FloatArray, FloatArray]:
    """Return low and high for the mean of n numbers in [0, 1] of this sum, at any look.

    ``n`` and ``total`` [...] may be many streams; together over all looks of one, its
    interval misses with probability at most ``error``. It is narrowest near
    ``expected`` numbers. Exact for bits, whose law a mean decides; of other numbers in
    [0, 1] it is true and wide. No number yet: 0 and 1.

    With E exp(lambda x) <= 1 + p (e^lambda - 1), concave in p, the product of bounds
    with the means of each is below that with their mean.
    """
    level = 2 / _check_error(error)
    rate, weight = _rates(validate.positive(expected=expected), 0.25, level)
    count, added = np.broadcast_arrays(
        validate.finite(n=n), validate.finite(total=total)
    )

    def reach(sums: FloatArray) -> FloatArray:
        """Return the means below which so large a sum is too rare."""

        def rejected(mean: FloatArray) -> NDArray[np.bool_]:
            grown = np.log1p(mean[..., None] * np.expm1(rate))
            log_wealth = weight + rate * sums[..., None] - count[..., None] * grown
            return np.asarray(_log_sum(log_wealth) >= math.log(level))

        zero = np.zeros(count.shape)
        # The last mean that is rejected; from outside, so one halving lower.
        edge = _largest(rejected, zero, np.ones(count.shape))
        return np.where(rejected(zero), np.maximum(edge - 2.0**-_HALVINGS, 0), 0.0)

    return reach(added), 1 - reach(count - added)


def deviation(squares: ArrayLike, error: float, expected: float) -> FloatArray:
    """Return how far a sum of numbers in [0, 1] may be from that of its means.

    Either way, at any look, but for a probability of ``error``. ``squares`` is the sum
    of (x - g)^2, each guess g in [0, 1] made before its x: with psi(l) = -ln(1 - l) - l
    the product of exp(l (x - mean) - psi(l) (x - g)^2) does not grow in the mean (Fan,
    Grama & Liu 2015). ``expected`` is the sum of squares for which it is smallest.
    """
    level = 2 / _check_error(error)
    rate, weight = _rates(validate.positive(expected=expected), 1.0, level)
    rate = np.minimum(rate, 0.9)
    values = validate.finite(squares=squares)[..., None]
    fixed = weight - (-np.log1p(-rate) - rate) * values
    # One rate alone would need so much, and all together no more.
    end = ((math.log(level) - fixed) / rate).min(axis=-1)

    def below(sums: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(_log_sum(fixed + rate * sums[..., None]) < math.log(level))

    return _largest(below, np.zeros(end.shape), end)


def _check_error(error: float) -> float:
    return validate.fraction(error=error)


# An alarm bets on these shares of the way from the bound down to 0, in half octaves.
_FALLS: Final = 2.0 ** -np.arange(0.5, 9, 0.5)
_STREAMS: Final = 1000  # simulated, to say when an alarm will come


@dataclass
class DropDetector:
    """An alarm for ever: bits are 1 less often than ``bound`` allows.

    While every bit is 1 with probability at least ``bound``, whatever came before, an
    alarm is ever given with probability at most ``error``. A drop may begin at any
    time: the bits are cut into blocks of ``block``, at each of which a bet begins. The
    s-th of them counts 1/(s (s + 1)): an early drop is found somewhat sooner than a
    late one. ``n`` counts the bits so far, ``alarm`` those at which it was given.
    """

    bound: float
    error: float
    block: int = 1
    n: int = 0
    beginnings: int = 0
    alarm: int | None = None

    def __post_init__(self) -> None:
        validate.fraction(bound=self.bound)
        _check_error(self.error)
        validate.at_least(1, block=self.block)
        alternative = self.bound * (1 - _FALLS)
        # What a 1 and a 0 add to the logarithm of each bet's wealth.
        self._one_gain = np.log1p(-_FALLS)
        self._zero_gain = np.log((1 - alternative) / (1 - self.bound))
        self._log_wealth = np.full(len(_FALLS), -np.inf)

    def add(self, bits: ArrayLike) -> None:
        """Take in bits (n,) in their order; what comes behind an alarm changes nothing.

        Anything but 0 and 1 is a UserError.
        """
        values = np.asarray(bits, dtype=np.int64)
        if not np.isin(values, (0, 1)).all():
            raise UserError("bits must be 0 or 1.")
        while self.alarm is None and len(values):
            size = -self.n % self.block or self.block
            part, values = values[:size], values[size:]
            ones = np.cumsum(part)
            self._step(self.n % self.block == 0, np.arange(1, len(part) + 1), ones)

    def add_counts(self, n: int, ones: float) -> None:
        """Take in n bits whose order nobody knows: a block by themselves.

        Or n numbers in [0, 1] of which this is the sum: what a bet gains by one is at
        most what the mean of bits would give it, so the bound on alarms holds.
        """
        if self.alarm is None and n:
            self._step(True, np.array([n]), np.array([ones]))

    def _step(self, begins: bool, n: NDArray[np.int64], ones: NDArray[Any]) -> None:
        """Take in bits whose counts (looks,) grow from one look to the next."""
        if begins:
            self.beginnings += 1
            weight = -math.log(self.beginnings) - math.log(self.beginnings + 1)
            self._log_wealth = np.logaddexp(self._log_wealth, weight)
        path = self._log_wealth + self._gain(n[:, None], ones[:, None])
        over = _log_sum(path) - math.log(len(_FALLS)) >= -math.log(self.error)
        if over.any():
            self.alarm = self.n + int(n[over.argmax()])
        self._log_wealth, self.n = path[-1], self.n + int(n[-1])

    def _gain(self, n: Any, ones: NDArray[np.int64]) -> FloatArray:
        """Return what each bet gains by n bits of which so many are 1."""
        return np.asarray(ones * self._one_gain + (n - ones) * self._zero_gain)

    def time_to_detection(
        self,
        share: float,
        *,
        before: int = 0,
        usual: float | None = None,
        step: int = 0,
        variance: float | None = None,
        seed: int = 0,
    ) -> FloatArray:
        """Return how many bits with this share of 1 an alarm takes: simulated streams.

        They come behind ``before`` bits with the ``usual`` share (none: the bound).
        Looks are ``step`` bits apart; none: so near to each other that it makes little
        difference. Of numbers in [0, 1] it takes the ``variance`` of one. The mean of
        the result (1,000,) has a standard error of about 2 %. Streams with an alarm
        before are left out; infinite where the share is not below the bound.
        """
        if share >= self.bound:
            return np.full(_STREAMS, np.inf)
        size = step or max(1, self.block // 16)
        looks_a_block = max(1, self.block // size)
        quiet, look, rng = -(-before // size), 0, np.random.default_rng(seed)
        wealth = np.full((_STREAMS, len(_FALLS)), -np.inf)
        times = np.full(_STREAMS, np.inf)
        least = math.log(len(_FALLS) / self.error)
        while look < quiet or np.isinf(times).any():
            if look % looks_a_block == 0:
                s = look // looks_a_block + 1
                wealth = np.logaddexp(wealth, -math.log(s * (s + 1)))
            p = share if look >= quiet else (usual or self.bound)
            if variance is None:
                ones = rng.binomial(size, p, _STREAMS)[:, None]
            else:
                spread = math.sqrt(size * variance)
                ones = rng.normal(size * p, spread, _STREAMS).clip(0, size)[:, None]
            wealth = wealth + self._gain(size, ones)
            look += 1
            times = np.where(
                _log_sum(wealth) >= least, np.minimum(times, look - quiet), times
            )
        return times[times > 0] * size


def decline_evidence(n: ArrayLike, ones: ArrayLike) -> float:
    """Return the evidence that bits are 1 less often in later looks, at any look.

    Look t has n[t] bits, of which ones[t] are 1. While shares never fall it ever
    reaches 1/error with probability at most ``error``, however often it is looked at.
    It is the likelihood of a fall behind some look, a mixture over looks and shares,
    over that of the best shares that never fall (Wasserman, Ramdas & Balakrishnan
    2020). Counts that are not whole or outside 0..n are a UserError; of one look
    nothing compares: 1 at most.
    """
    from scipy.optimize import isotonic_regression  # a second; few look back
    from scipy.special import betaln, xlogy

    total, right = validate.finite(n=n), validate.finite(ones=ones)
    if not ((right >= 0) & (right <= total) & (right % 1 == 0)).all():
        raise UserError("ones must be whole numbers, at most n of each look.")
    some = total > 0
    total, right = total[some], right[some]
    looks = len(total)
    if not looks:
        return 1.0
    before, ones_before = np.cumsum(total), np.cumsum(right)
    after, ones_after = before[-1] - before, ones_before[-1] - ones_before

    def mixture(sums: FloatArray, counts: FloatArray) -> FloatArray:
        return np.asarray(betaln(sums + 0.5, counts - sums + 0.5) - betaln(0.5, 0.5))

    falls = mixture(ones_before, before) + mixture(ones_after, after)
    behind = np.arange(1, looks + 1)
    weight = np.where(behind < looks, 1 / (behind * (behind + 1.0)), 1 / looks)
    share = isotonic_regression(right / total, weights=total).x
    best = (xlogy(right, share) + xlogy(total - right, 1 - share)).sum()
    return float(np.exp(min(_log_sum(np.log(weight) + falls) - best, 700.0)))
