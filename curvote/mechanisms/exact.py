"""Exact sampling on integers: exp(-x), the discrete Laplace law, random bits.

A uniform real is known by its leading bits, one 64-bit word. Nearly every comparison is
settled by that word and float64 arithmetic with a rigorous margin (a filter); the rest
draw further words and compare in exact arithmetic, so no probability is ever rounded.
"""

import decimal
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.entropy import Entropy, Words
from curvote.base.errors import InternalError
from curvote.base.validate import FloatArray

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
        wanted = int(candidates_per_draw * (n - filled)) + 16
        accepted = attempt(min(_CANDIDATES_AT_ONCE, wanted))[: n - filled]
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
        return rejection_sample(n, 1.7, partial(self._draw_candidates, entropy=entropy))

    def _draw_candidates(self, candidates: int, entropy: Entropy) -> NDArray[np.int64]:
        words = entropy.words(2 * candidates)
        uniform, coin = words[:candidates], words[candidates:]
        u = (uniform >> np.uint64(WORD_BITS - self.bits)).view(np.int64)
        accepted = np.flatnonzero(bernoulli_exp(coin, u, self.bits, entropy))
        v = geometric_draws(entropy.words(accepted.size), self.max_v, entropy)
        x = (v << self.bits) + u[accepted]
        magnitude = x.view(np.uint64) // np.uint64(self.s)
        # Random signs, by a bit that is not among the <= 52 leading ones that made U;
        # -0 is dropped.
        negative = (uniform[accepted] & np.uint64(1)).view(np.int64)
        signed = (magnitude.view(np.int64) ^ -negative) + negative
        nonzero: NDArray[np.int64] = signed[(magnitude != 0) | (negative == 0)]
        return nonzero


Bits = NDArray[np.bool_]
Packed = NDArray[np.uint8]
Labels = NDArray[np.int64]

_BYTE = 8
_REST_BITS = WORD_BITS - _BYTE
_NORMAL = NormalDist()
# Bits worked on at once: their bytes stay in the processor's cache.
_BITS_AT_ONCE = 1 << 20


def row_chunks(n: int, width: int) -> Iterator[slice]:
    """Yield slices that cover ``n`` rows of ``width`` bits, one row at least."""
    step = max(1, _BITS_AT_ONCE // width)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def bit_at(packed: Packed, columns: Labels) -> Bits:
    """Return one bit of each packed row (n, bytes); ``columns`` is (n,) or (1,)."""
    rows = np.arange(len(packed))
    return (packed[rows, columns // _BYTE] >> (7 - columns % _BYTE) & 1).astype(bool)


def bernoulli_bits(threshold: int, size: int, entropy: Entropy) -> Bits:
    """Return ``size`` bits, each 1 with probability threshold / 2^64 exactly.

    A bit is 1 iff a uniform word is below ``threshold`` < 2^64. The word's leading byte
    settles 255 bits of 256; its other 56 bits are drawn only where that byte ties.
    """
    lead, rest = divmod(threshold, 1 << _REST_BITS)
    leading = _random_bytes(size, entropy)
    bits: Bits = leading < np.uint8(lead)
    tied = np.flatnonzero(leading == np.uint8(lead))
    further = entropy.words(tied.size) >> np.uint64(_BYTE)
    bits[tied] = further < np.uint64(rest)
    return bits


def _random_bytes(size: int, entropy: Entropy) -> Packed:
    return entropy.words(-(-size // _BYTE)).view(np.uint8)[:size]


def random_subsets(sizes: Labels, barred: Labels, width: int, entropy: Entropy) -> Bits:
    """Return an exactly uniform subset of columns for each row, (n, width).

    Row i has ``sizes[i]`` < width columns, never column ``barred[i]``. It begins with
    independent bits of about the right number, then columns drawn at random are put in
    or taken out until the size is right. Each step treats all columns but the barred
    one alike, so all subsets of one size are equally likely, whatever the beginning.
    """
    n, share = sizes.size, _initial_share(int(sizes.max(initial=0)), width)
    rows: Bits = (_random_bytes(n * width, entropy) < share).reshape(n, width)
    rows[np.arange(n), barred] = False
    missing = sizes - np.count_nonzero(rows, axis=1)
    unfinished = np.flatnonzero(missing)
    while unfinished.size:
        columns = uniform_below(rows.shape[1], unfinished.size, entropy)
        lacking = missing[unfinished] > 0
        helps = (rows[unfinished, columns] != lacking) & (columns != barred[unfinished])
        changed, put_in = unfinished[helps], lacking[helps]
        rows[changed, columns[helps]] = put_in
        missing[changed] += np.where(put_in, -1, 1)
        unfinished = unfinished[missing[unfinished] != 0]
    return rows


def _initial_share(size: int, width: int) -> int:
    """Return how many of 256 bytes to begin with as ones.

    Where a share f of the columns is wanted, a column drawn to be put in is useful with
    probability 1 - f, one to be taken out with f: fewest are drawn if the beginning has
    too many ones with probability f. So it falls short where ones are the minority.
    """
    wanted = min(size, width - size) / width
    if wanted == 0:
        return 256 * (size // width)
    spread = math.sqrt(wanted * (1 - wanted) / width)
    share = wanted + _NORMAL.inv_cdf(wanted) * spread
    begin = round(256 * max(0.0, share))
    return begin if 2 * size <= width else 256 - begin


GRID_BITS = 20
GRID_STEP = 2.0**-GRID_BITS
# The grid point 1, counted in steps.
GRID_ONE = 1 << GRID_BITS


def grid_index(values: FloatArray) -> NDArray[np.int64]:
    """Return the grid point of each value, counted in steps; halves go to even."""
    return np.asarray(np.rint(values * GRID_ONE).astype(np.int64))
