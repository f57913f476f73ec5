"""PrivUnit and 1-of-K: directions reported as vectors of constant length.

The height h = <v, u> of a uniform unit vector v of R^d has the density
c (1 - h^2)^((d-3)/2); its square is Beta(1/2, (d-1)/2).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.blanket import Blanket
from curvote.base.entropy import Entropy, Words
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact
from curvote.mechanisms.base import VectorMechanism
from curvote.mechanisms.exact import WORDS

# So that some 4096 candidates a client are enough, whatever epsilon is.
SMALLEST_SHARE = 2.0**-12


@dataclass(frozen=True)
class Cap:
    """The cap {v: <v, u> >= gamma} of the unit sphere of R^d, 0 <= gamma < 1."""

    gamma: float
    d: int

    @property
    def _sine_squared(self) -> float:
        """1 - gamma^2, without cancellation."""
        return (1 - self.gamma) * (1 + self.gamma)

    @property
    def share(self) -> float:
        """The cap's share of the sphere."""
        from scipy import special

        return float(special.betainc((self.d - 1) / 2, 0.5, self._sine_squared)) / 2

    @property
    def first(self) -> float:
        """The partial mean E[h; h >= gamma] of the height."""
        from scipy import special

        power = (self.d - 1) / 2
        log = power * math.log(self._sine_squared) - special.betaln(0.5, power)
        return float(math.exp(log) / (self.d - 1))

    @property
    def second(self) -> float:
        """The partial second moment E[h^2; h >= gamma] of the height."""
        return ((self.d - 1) * self.gamma * self.first + self.share) / self.d

    def draw_heights(
        self, inside: NDArray[np.bool_], uniform: FloatArray
    ) -> FloatArray:
        """Return heights inside the cap or outside it from uniform numbers."""
        from scipy import special

        share = self.share
        above = np.where(inside, uniform * share, share + uniform * (1 - share))
        tail = 2 * np.minimum(above, 1 - above)
        square = special.betainccinv(0.5, (self.d - 1) / 2, tail)
        return np.asarray(np.copysign(np.sqrt(square), 0.5 - above))


def _mean_height(gamma: float, d: int, epsilon: float, spheres: int) -> float:
    """Return the mean height E<v, u> of a draw with a cap at ``gamma``."""
    cap, gain = Cap(gamma, d), -math.expm1(-epsilon)
    return cap.first / spheres * gain / (1 - (1 - cap.share / spheres) * gain)


@lru_cache(maxsize=256)
def best_cap(epsilon: float, d: int, spheres: int = 1) -> Cap:
    """Return the cap of the least variance, that is, of the largest E<v, u>.

    The derivative of E<v, u> in gamma has the sign of E<v, u> - gamma, so the best
    gamma is the mean height itself. The cap's share is ``SMALLEST_SHARE`` at least, of
    all ``spheres`` together where v lies on one of several and <v, u> is 0 on others.
    """
    from scipy import special

    square = special.betainccinv(0.5, (d - 1) / 2, 2 * SMALLEST_SHARE * spheres)
    highest = math.sqrt(square)
    if _mean_height(highest, d, epsilon, spheres) >= highest:
        return Cap(highest, d)
    from scipy import optimize  # where no optimum is sought, not worth its time

    gamma = optimize.brentq(
        lambda gamma: _mean_height(gamma, d, epsilon, spheres) - gamma, 0.0, highest
    )
    return Cap(float(gamma), d)


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

    def blanket(self) -> Blanket:
        """Return what all laws have in common: a uniform direction.

        The caps of u and -u have nothing in common, as gamma >= 0: the worst pair.
        """
        return Blanket.two_levels(self.epsilon, self.share, error=8 * self.margin)

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
        """Return the noised directions, of length 1: the first accepted candidates."""
        out, most = np.empty(u.shape), int(2 / self.acceptance) + 1
        for start in range(0, len(u), self.batch_size):
            waiting = np.arange(start, min(start + self.batch_size, len(u)))
            while waiting.size:
                fit = _COORDINATES_AT_ONCE // (self.length * waiting.size)
                shape = waiting.size, min(most, max(1, fit))
                candidates = self._candidates(shape, entropy)
                words = entropy.words(shape[0] * shape[1]).reshape(shape)
                accepted = self._accept(candidates, u[waiting], words)
                done = accepted.any(axis=1)
                first = candidates[done, accepted[done].argmax(axis=1)]
                out[waiting[done]] = self._unit(first)
                waiting = waiting[~done]
        return out

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


Labels = NDArray[np.int64]
# Of more, the caps' smallest share could not be had: see `cap.best_cap`.
MAX_CLASSES = 1 << 10


class OneOf(PrivUnit):
    """Reports a class y of K and a unit vector u of R^p by e_k (x) v/m, unbiased.

    A record is e_y (x) u: K blocks of p = d/K numbers, 2 or more, all zero but for the
    block of its class, which is a unit vector. ``clip`` keeps a row's longest block,
    normalises it, and counts the rows that this changes. It is `PrivUnit` on K spheres:
    the class k that is named and the direction v are e^epsilon times as likely where
    k = y and <v, u> >= gamma as elsewhere, gamma that of the least variance. The
    largest E[<v, u>; k = y] is ``m``, and gamma there is m itself.

    Candidates' classes are uniform by exact integers, so that only the caps' share is
    off: by a K-th of `PrivUnit`'s ``margin``.
    """

    name = "one_of"

    def __init__(self, *, epsilon: float, d: int, n_classes: int) -> None:
        self.n_classes = self.spheres = validate.at_least(2, n_classes=n_classes)
        if self.n_classes > MAX_CLASSES:
            raise UserError(f"n_classes is {n_classes}; at most {MAX_CLASSES:,}.")
        if validate.at_least(2 * self.n_classes, d=d) % self.n_classes:
            raise UserError(
                f"d is {d}; a record is {self.n_classes} blocks of as many numbers."
            )
        super().__init__(epsilon=epsilon, d=d)

    def split_records(self, records: FloatArray) -> tuple[Labels, FloatArray]:
        """Return the class (n,) and the block (n, p) of records."""
        blocks = self._blocks(records)
        classes = np.einsum("ijk,ijk->ij", blocks, blocks).argmax(axis=1)
        return classes, blocks[np.arange(len(classes)), classes]

    def _blocks(self, records: NDArray[Any]) -> NDArray[Any]:
        return np.reshape(records, (-1, self.n_classes, self.length))

    def join_records(self, classes: NDArray[Any], directions: FloatArray) -> FloatArray:
        """Return records (n, d) of classes (n,) and directions (n, p)."""
        blocks = np.zeros((len(classes), self.n_classes, self.length))
        blocks[np.arange(len(classes)), classes] = directions
        return blocks.reshape(-1, self.d)

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the longest blocks normalised, and how many rows that changes."""
        rows = self._check_records(values)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        classes, _ = self.split_records(rows / np.where(largest == 0, 1, largest))
        block = self._blocks(rows)[np.arange(len(classes)), classes]
        units, changed = normalise_rows(block)
        rest = np.count_nonzero(rows, axis=1) > np.count_nonzero(block, axis=1)
        return self.join_records(classes, units), int(np.count_nonzero(changed | rest))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        return self.join_records(*self.answers(*self.split_records(values), entropy))

    def answers(
        self, classes: Labels, u: FloatArray, entropy: Entropy
    ) -> tuple[Labels, FloatArray]:
        """Return exact draws: classes (n,) and directions (n, p) of length 1/m.

        ``classes`` are 0..K-1 and ``u`` unit vectors: neither is checked here.
        """
        out = self._draw_units(np.column_stack([classes, u]), entropy)
        return out[:, 0].astype(np.int64), out[:, 1:] / self.m

    def _candidates(self, shape: tuple[int, int], entropy: Entropy) -> FloatArray:
        """Return candidate classes and normal vectors (n, count, 1 + p)."""
        named = exact.uniform_below(self.n_classes, shape[0] * shape[1], entropy)
        vectors = super()._candidates(shape, entropy)
        return np.concatenate([named.reshape(*shape, 1), vectors], axis=2)

    def _unit(self, candidates: FloatArray) -> FloatArray:
        units = super()._unit(candidates[:, 1:])
        return np.column_stack([candidates[:, 0], units])

    def _inside(self, candidates: FloatArray, u: FloatArray) -> Any:
        """Return which candidates name u's class and lie in the cap around u."""
        same_class = candidates[..., 0] == u[:, :1]
        return same_class & super()._inside(candidates[..., 1:], u[:, 1:])

    def simulate(self, values: ArrayLike, entropy: Entropy) -> FloatArray:
        """Return draws of the same law by its parts: studies only."""
        records, _ = self.clip(values)
        split = self.split_records(records)
        return self.join_records(*self.simulate_reports(*split, entropy))

    def simulate_reports(
        self, classes: Labels, u: FloatArray, entropy: Entropy
    ) -> tuple[Labels, FloatArray]:
        """Return draws of ``draw_reports``'s law in floating point."""
        n, inside = len(u), bernoulli_events(self.p, len(u), entropy)
        keeps_class = inside | bernoulli_events(self._keep_chance, n, entropy)
        other_class = exact.uniform_below(self.n_classes - 1, n, entropy)
        heights = self.cap.draw_heights(inside, uniform_numbers(n, entropy))
        v = directions_at_heights(u, heights, entropy)
        away = np.flatnonzero(~keeps_class)
        numbers = normal_numbers(v[away].size, entropy).reshape(v[away].shape)
        v[away] = super()._unit(numbers)
        named = np.where(keeps_class, classes, other_class + (other_class >= classes))
        return named, v / self.m

    @property
    def _keep_chance(self) -> float:
        """The chance that a direction outside of the cap comes with its own class."""
        return (1 - self.cap.share) / (self.n_classes - self.cap.share)

    def naming_chances(self, shares: ArrayLike) -> FloatArray:
        """Return how often each class is named, (K,), where they have ``shares``."""
        right = self.p + (1 - self.p) * self._keep_chance
        parts = np.asarray(shares) / np.sum(shares)
        wrong = (1 - right) * (1 - parts) / (self.n_classes - 1)
        return np.asarray(right * parts + wrong)

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each record whether exactly one block has length 1/m."""
        blocks = self._blocks(outputs)
        single = np.count_nonzero((blocks != 0).any(axis=2), axis=1) == 1
        return np.asarray(single & self.has_report_length(outputs))

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        answers = self.split_records(np.asarray(at, dtype=np.float64))
        return self.log_likelihood(self.split_records(self.mean(x)), answers)

    def log_likelihood(
        self, record: tuple[Labels, FloatArray], at: tuple[Labels, FloatArray]
    ) -> FloatArray:
        """Return ln P(at | record) up to a constant and ``margin``, (n,).

        Both are classes (n,) and directions (n, p).
        """
        (class_, u), (named, v) = record, at
        heights = np.sum(v * u, axis=-1) / np.linalg.norm(v, axis=-1)
        inside = (named == class_) & (heights >= self.cap.gamma)
        return np.asarray(inside * exact.exact_log(self.worst_ratio()))

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of each coordinate, (n, d): 1/m^2 - 1 in all."""
        inside, outside = self._weights
        mean, total_kept = self.mean(x), self.n_classes * self.acceptance
        share = self.cap.share
        block_variance = (inside * share + outside * (1 - share)) / total_kept
        rest = 1 / self.length - self.cap.second
        along = (inside * self.cap.second + outside * rest) / total_kept
        classes, u = self.split_records(mean)
        across = (block_variance - along) / (self.length - 1) * (1 - u**2)
        blocks = np.full((len(u), self.n_classes, self.length), outside / total_kept)
        blocks /= self.length
        blocks[np.arange(len(u)), classes] = along * u**2 + across
        return np.asarray(blocks.reshape(mean.shape) / self.m**2 - mean**2)


@lru_cache(maxsize=256)
def one_of_variance(n_classes: int, p: int, epsilon: float) -> float:
    """Return the mean variance of a coordinate: (1/m^2 - 1)/(K p)."""
    mechanism = OneOf(epsilon=epsilon, d=n_classes * p, n_classes=n_classes)
    return float((mechanism.m**-2 - 1) / mechanism.d)
