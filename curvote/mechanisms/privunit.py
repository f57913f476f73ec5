"""PrivUnit: a direction of R^d, reported as an unbiased vector of constant length."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.entropy import Entropy, Words
from curvote.mechanisms import exact
from curvote.mechanisms.base import VectorMechanism
from curvote.mechanisms.cap import best_cap
from curvote.mechanisms.exact import WORDS
from curvote.validate import FloatArray

# Bounds, for each coordinate, by how much the probability that a candidate falls into
# a cap depends on where the cap is: see ``PrivUnit``.
CAP_ERROR = 2.0**-42
# A row this close to length 1 is a unit vector, rounded.
UNIT_ERROR = 1e-9
# Coordinates of candidates worked on at once: they stay in the processor's cache.
_COORDINATES_AT_ONCE = 1 << 16


class PrivUnit(VectorMechanism):
    """Reports a unit vector u by one of length 1/m with mean u (Bhowmick et al. 2018).

    The domain is the unit sphere of R^d, d >= 2. ``clip`` normalises a row of another
    length, turns a zero row into the first axis, and counts both. With a cap
    {v: <v, u> >= gamma} the answer is v/m, v uniform in the cap with probability p and
    uniform outside it otherwise. Gamma, and with it p, is the one of least variance
    (Asi, Feldman & Talwar 2022), the cap's share of the sphere being 2^-12 at least.

    **The draw** is a rejection: candidates v come from words alone, and one is kept if
    its 64-bit word is below ``threshold_in`` (2^64: always) or ``threshold_out``. So
    every answer is possible for every u, and P(v | u)/P(v | u') is the ratio of two
    thresholds, whose largest is ``worst_ratio``, times Z(u')/Z(u), where Z(u) is the
    chance that a candidate is kept. Were candidates exactly uniform, Z would be the
    same for every u. They are normalised Gaussians in floating point (Box and Muller's
    formula on 52-bit uniforms): within about d 2^-46 radians of exactly uniform ones
    in the mean, so a cap holds its share up to d ``CAP_ERROR``, a bound with room to
    spare, and ln Z varies by ``margin``: ``threshold_out`` is the least with
    ln(2^64/threshold_out) + margin <= epsilon, compared as fractions.
    """

    name = "privunit"
    unbiased = True
    # Of which v may lie on any: more than one in a subclass.
    spheres = 1

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(epsilon=epsilon, d=validate.at_least(2, d=d))
        self.length = self.d // self.spheres
        self.cap = best_cap(self.epsilon, self.length, self.spheres)
        gain = -np.expm1(-self.epsilon)
        acceptance = 1 - (1 - self.share) * gain
        error = self.length * CAP_ERROR / self.spheres
        self.margin = float(4 * error * gain / acceptance)
        self.threshold_in = WORDS
        rest = Fraction(self.epsilon) - Fraction(self.margin)
        self.threshold_out = _reject_threshold(rest)
        # For p and m alone, which are rounded to float64 anyway: from the rounded
        # difference, as the studies that are stored were drawn.
        self._outside = _reject_threshold(Fraction(float(rest))) / WORDS

    @property
    def share(self) -> float:
        """The cap's share of the candidates."""
        return self.cap.share / self.spheres

    @property
    def batch_size(self) -> int:
        """How many records are drawn at once; batches change no draw."""
        return max(1, _COORDINATES_AT_ONCE // self.length)

    @property
    def acceptance(self) -> float:
        """The acceptance rate Z of the candidates."""
        inside, outside = self._weights
        return inside * self.share + outside * (1 - self.share)

    @property
    def p(self) -> float:
        """The probability that the answer is in the cap."""
        return self.share / self.acceptance

    @property
    def m(self) -> float:
        """The mean of <v, u>: answers have length 1/m."""
        inside, outside = self._weights
        return (inside - outside) * (self.cap.first / self.spheres) / self.acceptance

    @property
    def _weights(self) -> tuple[float, float]:
        return 1.0, self._outside

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the rows normalised, and how many were no unit vectors."""
        units, changed = normalise_rows(self._check_records(values))
        return units, int(np.count_nonzero(changed))

    def law(self, x: ArrayLike) -> None:
        """Return None: a cap of the sphere is no mixture of products of intervals."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        out = self._draw_units(values, entropy)
        out /= self.m
        return out

    def _draw_units(self, u: FloatArray, entropy: Entropy) -> FloatArray:
        """Return the noised directions, of length 1."""
        out = np.empty(u.shape)
        for start in range(0, len(u), self.batch_size):
            block = slice(start, start + self.batch_size)
            out[block] = self._draw_block(u[block], entropy)
        return out

    def _draw_block(self, u: FloatArray, entropy: Entropy) -> FloatArray:
        """Return each client's first accepted candidate."""
        directions, waiting = np.empty(u.shape), np.arange(len(u))
        most = int(2 / self.acceptance) + 1
        while waiting.size:
            count = min(
                most, max(1, _COORDINATES_AT_ONCE // (self.length * waiting.size))
            )
            candidates = self._candidates((waiting.size, count), entropy)
            words = entropy.words(waiting.size * count).reshape(waiting.size, count)
            accepted = self._accept(candidates, u[waiting], words)
            done = accepted.any(axis=1)
            first = candidates[done, accepted[done].argmax(axis=1)]
            directions[waiting[done]] = self._unit(first)
            waiting = waiting[~done]
        return directions

    def _candidates(self, shape: tuple[int, int], entropy: Entropy) -> FloatArray:
        """Return normal vectors (n, count, d) drawn from words alone."""
        numbers = shape[0] * shape[1] * self.length
        return normal_numbers(numbers, entropy).reshape(*shape, self.length)

    def _unit(self, candidates: FloatArray) -> FloatArray:
        """Return the candidates (n, d) at length 1."""
        length = np.linalg.norm(candidates, axis=1, keepdims=True)
        return np.asarray(candidates / length)

    def _accept(self, candidates: FloatArray, u: FloatArray, words: Words) -> Any:
        """Return which candidates, (n, count), their words accept."""
        inside = self._inside(candidates, u)
        return inside | (words < np.uint64(self.threshold_out))

    def _inside(self, candidates: FloatArray, u: FloatArray) -> Any:
        """Return which candidates, (n, count), lie in the cap around u."""
        lengths = np.sqrt(np.einsum("ijk,ijk->ij", candidates, candidates))
        heights = np.einsum("ijk,ik->ij", candidates, u)
        return heights >= self.cap.gamma * lengths

    def simulate(self, values: ArrayLike, entropy: Entropy) -> FloatArray:
        """Return draws of the same law in floating point, for studies only.

        In the cap or outside it by an integer threshold, the height by its inverse
        distribution function, the tangent uniform. Its low bits may betray the input.
        """
        u, _ = self.clip(values)
        inside = bernoulli_events(self.p, len(u), entropy)
        heights = self.cap.draw_heights(inside, uniform_numbers(len(u), entropy))
        return directions_at_heights(u, heights, entropy) / self.m

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each record whether it has length 1/m, up to rounding."""
        return self.has_report_length(outputs)

    def has_report_length(self, vectors: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each vector whether it has length 1/m, up to rounding."""
        length = np.linalg.norm(vectors, axis=-1) * self.m
        return np.asarray(np.abs(length - 1) <= UNIT_ERROR)

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the unit vector itself, (n, d)."""
        return self.clip(x)[0]

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of each coordinate, (n, d): 1/m^2 - 1 in all."""
        inside, outside = self._weights
        rest = 1 / self.d - self.cap.second
        along = (inside * self.cap.second + outside * rest) / self.acceptance
        square = self.mean(x) ** 2
        across = (1 - along) / (self.d - 1) * (1 - square)
        return np.asarray((along * square + across) / self.m**2 - square)

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the log-likelihood up to ``margin``."""
        v = np.asarray(at) / np.linalg.norm(at, axis=-1, keepdims=True)
        inside = np.sum(v * self.mean(x), axis=-1) >= self.cap.gamma
        return np.asarray(inside * exact.exact_log(self.worst_ratio()))

    def worst_ratio(self) -> Fraction:
        """Return ``threshold_in`` / ``threshold_out``."""
        return Fraction(self.threshold_in, self.threshold_out)

    def worst_log_ratio(self) -> float:
        """Return the log ratio of the thresholds plus ``margin``, rounded up.

        What the integers make of it: nothing holds it down to epsilon but they.
        """
        return exact.log_rounded_up(self.worst_ratio(), more=self.margin)


@lru_cache(maxsize=256)
def privunit_variance(d: int, epsilon: float) -> float:
    """Return the mean variance of a coordinate: (1/m^2 - 1)/d."""
    return float((PrivUnit(epsilon=epsilon, d=d).m ** -2 - 1) / d)


def _reject_threshold(epsilon: Fraction) -> int:
    """Return 2^64 e^-epsilon, rounded up."""
    spare = exact.WORD_BITS
    ratio = epsilon.as_integer_ratio()
    _, high = exact.exp_bounds(*ratio, exact.WORD_BITS + spare)
    return -(-high // (1 << spare))


def normalise_rows(rows: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return rows at length 1, and which had another length."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest == 0, 1, largest)
    scaled[largest[:, 0] == 0, 0] = 1
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit = np.isclose(largest, 1 / length, rtol=UNIT_ERROR, atol=0)
    return scaled / length, ~unit[:, 0]


def directions_at_heights(
    u: FloatArray, heights: FloatArray, entropy: Entropy
) -> FloatArray:
    """Return directions at ``heights`` above u, with a uniform tangent."""
    heights = heights[:, None]
    tangent = normal_numbers(u.size, entropy).reshape(u.shape)
    tangent -= np.sum(tangent * u, axis=1, keepdims=True) * u
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    return np.asarray(heights * u + np.sqrt(1 - heights**2) * tangent)


def bernoulli_events(probability: float, n: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Return ``n`` events of a probability, to 2^-53, for studies only."""
    threshold = min(int(probability * WORDS), WORDS - 1)
    return np.asarray(entropy.words(n) < np.uint64(threshold))


def uniform_numbers(n: int, entropy: Entropy) -> FloatArray:
    """Return ``n`` uniform numbers in (0, 1)."""
    leading = (entropy.words(n) >> np.uint64(12)).view(np.int64)
    return np.asarray((leading + 0.5) * 2.0**-52)


def normal_numbers(n: int, entropy: Entropy) -> FloatArray:
    """Return ``n`` standard normal numbers (Box & Muller 1958)."""
    first, second = uniform_numbers(n + n % 2, entropy).reshape(2, -1)
    radius = np.sqrt(-2 * np.log(first))
    second *= 2 * np.pi
    return np.concatenate([radius * np.cos(second), radius * np.sin(second)])[:n]
