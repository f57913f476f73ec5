"""Exact sampling on integers: exp(-x), the discrete Laplace law, random bits.

A uniform real is known by its leading bits, one 64-bit word. Nearly every comparison is
settled by that word and float64 arithmetic with a rigorous margin (a filter); the rest
draw further words and compare in exact arithmetic, so no probability is ever rounded.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy, Words
from curvote.errors import InternalError
from curvote.validate import FloatArray

WORD_BITS = 64
WORDS = 1 << WORD_BITS
# numpy's exp is within 4 ulp (2^-51) and a word as float64 within 2^-54.
MARGIN = 2.0**-44
# U / 2^52 is exact in float64, and 12 bits of its word are left for the sign.
MAX_BITS = 52
# Candidates worked on at once: their arrays stay in the processor's cache.
_CANDIDATES_AT_ONCE = 1 << 14

Draws = NDArray[np.int64]


def exp_bounds(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Return integers with ``low <= 2^bits exp(-numerator/denominator) <= high``.

    The exponent is at most 0. ``high - low`` is 3 at most: decimal's exp is correctly
    rounded, and 20 spare digits hold the errors of the other steps far below 1.
    """
    if numerator > bits * denominator:
        return 0, 1
    context = decimal.Context(prec=bits // 3 + 20)
    power = context.exp(context.divide(Decimal(-numerator), Decimal(denominator)))
    near = int(context.multiply(power, Decimal(1 << bits)))
    return max(near - 1, 0), near + 2


def logistic_threshold(epsilon: float, inside: int = 1, outside: int = 1) -> int:
    """Return floor(2^64 e^epsilon a / (e^epsilon a + b)), rounded towards privacy.

    a = ``inside`` and b = ``outside`` count the outcomes that share each side evenly,
    so one inside is at most e^epsilon times as likely as one outside. From an upper
    bound on e^-epsilon: never above the exact floor, never below the uniform share.
    """
    # Where b is far above a, e^-epsilon is needed to as many bits more.
    bits = max(4 * WORD_BITS, (outside // inside).bit_length() + 2 * WORD_BITS)
    _, high = exp_bounds(*epsilon.as_integer_ratio(), bits)
    weight = inside << bits
    threshold = (weight << WORD_BITS) // (weight + outside * high)
    uniform = (inside << WORD_BITS) // (inside + outside)
    return min(max(threshold, uniform), WORDS - 1)


def exact_log(ratio: Fraction) -> float:
    """Return ln(ratio), correctly rounded."""
    context = decimal.Context(prec=60)
    parts = Decimal(ratio.numerator), Decimal(ratio.denominator)
    return float(context.ln(context.divide(*parts)))


def log_rounded_up(ratio: Fraction, *, more: float = 0.0) -> float:
    """Return ln(ratio) + ``more``, rounded up."""
    context = decimal.Context(prec=60)
    parts = Decimal(ratio.numerator), Decimal(ratio.denominator)
    total = context.add(context.ln(context.divide(*parts)), Decimal(more))
    near = float(total)
    return near if Decimal(near) >= total else math.nextafter(near, math.inf)


def uniform_below(n: int, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Return ``size`` uniform whole numbers in [0, n), exactly.

    A word in the last, incomplete run of n is drawn again: probability n / 2^64.
    """
    words = entropy.words(size).copy()
    limit = WORDS // n * n
    if limit < WORDS:
        while (again := np.flatnonzero(words >= np.uint64(limit))).size:
            words[again] = entropy.words(again.size)
    return (words % np.uint64(n)).astype(np.int64)


class LazyUniform:
    """A uniform real in [0, 1) by its leading bits; more are drawn when needed."""

    def __init__(self, word: int, entropy: Entropy) -> None:
        self._prefix, self._bits, self._entropy = word, WORD_BITS, entropy

    def below_exp(self, numerator: int, denominator: int) -> bool:
        """Return exactly whether the real lies below exp(-num/den)."""
        while True:
            low, high = exp_bounds(numerator, denominator, self._bits)
            if self._prefix + 1 <= low:
                return True
            if self._prefix >= high:
                return False
            fresh = int(self._entropy.words(1)[0])
            self._prefix = self._prefix << WORD_BITS | fresh
            self._bits += WORD_BITS


def bernoulli_exp(
    words: Words, numerators: NDArray[np.int64], bits: int, entropy: Entropy
) -> NDArray[np.bool_]:
    """Return Bernoulli(exp(-numerator / 2^bits)) for each word, exactly.

    ``numerators`` lie in [0, 2^bits), ``bits`` is at most 52. About one word in 2^43
    is within ``MARGIN`` of its bound and is settled exactly.
    """
    gap = np.exp(numerators * -(2.0**-bits))
    gap -= words * 2.0**-WORD_BITS
    accepted: NDArray[np.bool_] = gap > 0
    np.abs(gap, out=gap)
    for i in np.flatnonzero(gap <= MARGIN):
        uniform = LazyUniform(int(words[i]), entropy)
        accepted[i] = uniform.below_exp(int(numerators[i]), 1 << bits)
    return accepted


def _exp_floor(k: int) -> int:
    """Return floor(2^64 e^-k); e^-k is irrational, so enough bits always settle it."""
    spare = 2 * WORD_BITS
    low, high = (bound >> spare for bound in exp_bounds(k, 1, WORD_BITS + spare))
    if low != high:
        raise InternalError(f"floor(2^64 e^-{k}) is not settled by {spare} spare bits.")
    return low


# floor(2^64 e^-k), increasing; the 0 stands for every k from 45 on.
_POWERS = np.array([_exp_floor(k) for k in range(45, 0, -1)], dtype=np.uint64)


def geometric_draws(words: Words, most: int, entropy: Entropy) -> NDArray[np.int64]:
    """Return V with P(V >= k) = e^-k exactly, one for each word.

    V is the number of powers e^-k above the uniform; a word that equals the first 64
    bits of one is settled exactly. ``most`` is at least 45.
    """
    above = np.searchsorted(_POWERS, words, side="right")
    for i in np.flatnonzero(_POWERS[above - 1] == words):
        above[i] = len(_POWERS) - geometric_draw(int(words[i]), most, entropy)
    return len(_POWERS) - above


def geometric_draw(word: int, most: int, entropy: Entropy) -> int:
    """Return the largest k with uniform < e^-k, for one word."""
    uniform, k = LazyUniform(word, entropy), 0
    while k < most and uniform.below_exp(k + 1, 1):
        k += 1
    return k


def rejection_sample(
    n: int, candidates_per_draw: float, attempt: Callable[[int], Draws]
) -> Draws:
    """Return ``n`` draws collected from repeated attempts.

    ``candidates_per_draw`` is more than the mean number of candidates for one draw.
    """
    draws, filled = np.empty(n, dtype=np.int64), 0
    while filled < n:
        candidates = min(
            _CANDIDATES_AT_ONCE, int(candidates_per_draw * (n - filled)) + 16
        )
        accepted = attempt(candidates)[: n - filled]
        draws[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return draws


@dataclass(frozen=True)
class DiscreteLaplace:
    """The law P(k) proportional to exp(-|k| s / 2^bits) on the integers, exactly.

    Algorithm 2 of Canonne, Kamath & Steinke (2020) with t = 2^bits: U uniform below t,
    kept with probability exp(-U/t); V geometric; Y = (U + t V) // s with a random sign,
    where (negative, 0) is drawn again. V is cut at ``max_v`` (at least 2047, reached
    with probability e^-2047), so that U + t V stays below 2^63.
    """

    s: int
    bits: int = MAX_BITS

    def __post_init__(self) -> None:
        if not (0 < self.s < 1 << 63 and 0 <= self.bits <= MAX_BITS):
            raise InternalError(f"No sampler for s={self.s}, t=2^{self.bits}.")

    @property
    def rate(self) -> float:
        """The decay s/t of the log-probability for each step."""
        return self.s / (1 << self.bits)

    @property
    def max_v(self) -> int:
        """The largest V; 2^bits (most_v + 1) is 2^63."""
        return (1 << (63 - self.bits)) - 1

    @property
    def exact_below(self) -> int:
        """The |k| below which the law is exact; draws with V cut are never below."""
        return (self.max_v << self.bits) // self.s

    @property
    def variance(self) -> float:
        """The variance 2 e^-g / (1 - e^-g)^2 with g = s/t."""
        return float(2 * np.exp(-self.rate) / np.expm1(-self.rate) ** 2)

    def cdf(self, k: ArrayLike) -> FloatArray:
        """Return P(Y <= k); ``k`` is rounded down to whole numbers."""
        k = np.floor(k)
        tail = np.exp(-self.rate * np.where(k < 0, -k, k + 1))
        tail /= 1 + np.exp(-self.rate)
        return np.where(k < 0, tail, 1 - tail)

    def sample(self, n: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return ``n`` independent draws."""
        # 1.7 > 1 / (1 - 1/e), the mean number of candidates for each draw.
        return rejection_sample(
            n, 1.7, lambda some: self._draw_candidates(some, entropy)
        )

    def _draw_candidates(self, candidates: int, entropy: Entropy) -> NDArray[np.int64]:
        words = entropy.words(2 * candidates)
        uniform, coin = words[:candidates], words[candidates:]
        u = (uniform >> np.uint64(WORD_BITS - self.bits)).view(np.int64)
        accepted = np.flatnonzero(bernoulli_exp(coin, u, self.bits, entropy))
        x = (
            geometric_draws(entropy.words(accepted.size), self.max_v, entropy)
            << self.bits
        )
        x += u[accepted]
        return _apply_signs(x.view(np.uint64) // np.uint64(self.s), uniform[accepted])


def _apply_signs(magnitude: Words, words: Words) -> NDArray[np.int64]:
    """Return magnitudes with random signs; -0 is dropped.

    That bit is not among the ``bits`` <= 52 leading ones that made U.
    """
    negative = (words & np.uint64(1)).view(np.int64)
    signed = (magnitude.view(np.int64) ^ -negative) + negative
    nonzero: NDArray[np.int64] = signed[(magnitude != 0) | (negative == 0)]
    return nonzero
