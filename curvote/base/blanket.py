"""Amplification by shuffling of a message whose law is known: its privacy blanket.

Balle, Bell, Gascon & Nissim (2019), "The privacy blanket of the shuffle model", lemma
5.3. Two tables differ in one client's record, x or x', with laws P and Q of its
message, and a measure B lies below the law of every other record. Who is shown which
of the others drew from B, and what all the rest sent, still sees, with X = (P - e^eps
Q)/B drawn by B and 0 with the mass that B lacks,

    delta(eps) <= E[max(X_1 + ... + X_n, 0)]/n.

Whatever raises the law of X in the convex order, mean kept, raises the right side: so
is each atom rounded here, to the two multiples of a step beside it, and the law of the
sum is a power of one Fourier transform. What is cut off (Bernstein's inequality) and
what floating point may lose is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Numbers in a transform: steps are at most a quarter of one X's deviation, which adds
# at most 1.6 % to its variance, as long as the largest transform has room.
_LEAST, _MOST, _FINE = 1 << 12, 1 << 17, 4
# More clients hide no less, and their sum would need more digits than a float has.
MOST_CLIENTS = 10**7
# What is cut off of the sum's mean, far below n delta.
_CUT = 1e-9
_TRIALS, _CLOSE = 40, 3e-4
# A factor of a transform that has fallen by e to this power is left out.
_UNSEEN = 50.0


@dataclass(frozen=True, eq=False)
class Blanket:
    """Atoms of the worst pair of records: P/B, Q/B and B of each, (k,) all.

    P and Q may be off by ``error`` in total variation.
    """

    first: Array
    second: Array
    mass: Array
    error: float = 0.0

    @classmethod
    def two_levels(
        cls, epsilon: float, share: float, overlap: float = 0.0, error: float = 0.0
    ) -> Blanket:
        """Return the blanket of a law with p = e^epsilon in S(x) and 1 elsewhere.

        Densities are up to a constant, about a measure of which S(x) has the ``share``
        for every x, and S(x) and S(x') have the ``overlap`` in common, or more. B is
        the low level everywhere. More overlap b turns a mass b of each of X = p - t and
        1 - p t (t = e^eps) into p (1 - t) and 1 - t, which lie between these and have
        the same sum: lower in the convex order, so the least overlap is the worst.
        """
        p, apart = math.exp(epsilon), share - overlap
        low = 1 / (share * p + 1 - share)
        mass = low * np.array([apart, apart, overlap, 1 - share - apart])
        return cls(np.array([p, 1, p, 1]), np.array([1, p, p, 1]), mass, error)

    @classmethod
    def pure(cls, epsilon: float, variation: float) -> Blanket:
        """Return the blanket of any law with P <= p Q, p = e^epsilon, for every pair.

        ``variation``, at most (p - 1)/(p + 1), is the largest total variation of two
        records' laws. B is max(P, Q)/p of the pair (`curvote.base.accounting`).
        """
        p = math.exp(epsilon)
        part = variation / math.expm1(epsilon)
        mass = np.array([part, part, (1 - (p + 1) * part) / p])
        return cls(np.array([p, 1, p]), np.array([1, p, p]), mass)

    def delta(self, epsilon: float, n: int) -> float:
        """Return a delta that holds with ``epsilon`` for ``n`` messages, shuffled."""
        values = self.first - math.exp(epsilon) * self.second
        mean = float(values @ self.mass)
        variance = float(values**2 @ self.mass) - mean**2
        largest = float(np.abs(values).max()) + abs(mean)
        if variance <= 0:
            return float(max(mean, 0.0) + self.error * (1 + math.exp(epsilon)))
        half = _half_width(n, mean, variance, largest)
        size = 1 << math.ceil(math.log2(_FINE * half * 2 / math.sqrt(variance)))
        size = min(max(size, _LEAST), _MOST)
        # Rounding makes the sum wider, and so the step: once more, with one that is
        # longer than the last.
        step = 2 * half / (size - 4)
        while True:
            half = _half_width(n, mean, variance + step**2 / 4, largest + step)
            if 2 * half <= step * (size - 4):
                break
            step = max(2 * half / (size - 4), 1.01 * step)
        law, lost = _sum_law(values / step, self.mass, n, size)
        positive = np.arange(size // 2)
        total = positive @ (np.maximum(law[: size // 2], 0) + lost)
        counted = (step * total * (1 + 1e-12) + _CUT) / n
        far = _exponential_bound(values, self.mass, n)
        return min(float(counted), far) + self.error * (1 + math.exp(epsilon))

    def epsilon(self, n: int, delta: float, most: float) -> float:
        """Return an epsilon that holds with ``delta``, at most ``most``.

        ``most`` holds by another bound. Found by the chord of ln delta, halved where
        that is slow; what is returned was computed to hold.
        """
        n = min(n, MOST_CLIENTS)
        low, high = 0.0, most
        ends = [math.log(max(self.delta(e, n), 1e-300) / delta) for e in (low, high)]
        if ends[0] <= 0:
            return low
        if ends[1] > 0:
            return most
        for trial in range(_TRIALS):
            if high - low <= _CLOSE * high:
                break
            chord = low + (high - low) * ends[0] / (ends[0] - ends[1])
            middle = (low + high) / 2 if trial % 3 == 2 else chord + _CLOSE * high / 3
            middle = min(max(middle, low + _CLOSE * high / 3), high - _CLOSE * high / 3)
            value = math.log(max(self.delta(middle, n), 1e-300) / delta)
            if value <= 0:
                high, ends[1] = middle, value
            else:
                low, ends[0] = middle, value
        return high


def _half_width(n: int, mean: float, variance: float, largest: float) -> float:
    """Return how far from 0 the sum of n may be; beyond, its mean is below ``_CUT``.

    By Bernstein's inequality, ``largest`` being the most that one is from its mean.
    """
    logs = math.log(2 * n * largest / _CUT)
    part = logs * largest / 3
    reach = part + math.sqrt(part**2 + 2 * logs * n * variance)
    return min(reach, n * largest) + n * abs(mean)


def _exponential_bound(values: Array, mass: Array, n: int) -> float:
    """Return a bound of E[max(S, 0)]/n for the sum S: max(x, 0) <= e^(s x - 1)/s.

    Where S is hardly ever above 0 it is far below what rounding leaves.
    """
    rates = np.geomspace(1e-6, 500, 400) / np.abs(values).max()
    growth = np.log1p(np.expm1(rates[:, None] * values) @ mass)
    logs = n * growth - 1 - np.log(rates * n)
    return float(np.exp(min(logs.min(), 0.0)) * (1 + 1e-9))


def _sum_law(places: Array, mass: Array, n: int, size: int) -> tuple[Array, float]:
    """Return the law (size,) of n drawn places modulo size, and its largest error.

    A place between two whole numbers is one of these, with its mean kept.
    """
    lower = np.floor(places)
    above = mass * (places - lower)
    turns = -2j * np.pi / size * np.arange(size // 2 + 1)
    once = np.exp(turns)
    transform = np.full(len(turns), 1 - mass.sum(), dtype=np.complex128)
    for place, low, high in zip(lower, mass - above, above, strict=True):
        transform += np.exp(turns * place) * (low + high * once)
    sizes = np.abs(transform)
    large = sizes > math.exp(-_UNSEEN / n)
    powers = np.zeros_like(transform)
    powers[large] = np.exp(n * np.log(transform[large]))
    law = np.fft.irfft(powers, size)
    # Each factor is off by units of 2^-53 that grow with the angle, the transform back
    # by some a level.
    angle = float(np.abs(turns[large]).max() * np.abs(places).max())
    units = 2.0**-53 * ((16 + 4 * angle) * n + 8 * math.log2(size))
    lost = 2 * units * (sizes[large] ** n).sum() / size + math.exp(-_UNSEEN)
    return law, float(lost)
