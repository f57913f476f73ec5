"""Output laws of mechanisms: laws on the line, and mixtures of their products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.validate import FloatArray

# More products than these are not written out.
MAX_TERMS = 1 << 12

# Stands in for infinity, which floats cannot subtract from itself.
_FAR = 1e150

Rest = Callable[[FloatArray, FloatArray], FloatArray]
Side = Literal["left", "right"]


def _zero_rest(_: FloatArray, at: FloatArray) -> FloatArray:
    return np.zeros_like(at)


@dataclass(frozen=True)
class Law:
    """Laws on the line, one for each of n inputs: atoms and a rest.

    ``points`` (n, k), not decreasing in a row, have ``masses`` (n, k). ``rest`` takes
    the ``inputs`` (n, 1) and places (n, m) or (1, m), and returns P(the output is no
    atom and at most that), (n, m); it may be a step function. No output lies outside
    [``low``, ``high``].
    """

    points: FloatArray
    masses: FloatArray
    rest: Rest = _zero_rest
    inputs: FloatArray | None = None
    low: float = -inf
    high: float = inf

    @property
    def n(self) -> int:
        """The number of inputs."""
        return len(self.masses)

    def cdf(self, at: ArrayLike) -> FloatArray:
        """Return P(output <= at), (n, m), for ``at`` (m,) or (n, m)."""
        places = np.atleast_2d(np.asarray(at, dtype=np.float64))
        return self._rest_mass(places) + self._atom_mass(places, "right")

    def below(self, at: ArrayLike) -> FloatArray:
        """Return P(output < at), (n, m), for ``at`` (m,) or (n, m)."""
        places = np.atleast_2d(np.asarray(at, dtype=np.float64))
        rest = self._rest_mass(np.nextafter(places, -inf))
        return rest + self._atom_mass(places, "left")

    def between(self, low: ArrayLike, high: ArrayLike) -> FloatArray:
        """Return P(low <= output <= high), (n, m)."""
        return np.maximum(self.cdf(high) - self.below(low), 0.0)

    def _rest_mass(self, at: FloatArray) -> FloatArray:
        inputs = np.empty((self.n, 0)) if self.inputs is None else self.inputs
        return self.rest(inputs, np.clip(at, -_FAR, _FAR))

    def _atom_mass(self, at: FloatArray, side: Side) -> FloatArray:
        places = self._count_atoms(at, side)
        if len(places) < self.n:
            return np.asarray(np.take(self._cumulative_masses, places[0], axis=1))
        return np.asarray(np.take_along_axis(self._cumulative_masses, places, axis=1))

    @cached_property
    def _cumulative_masses(self) -> FloatArray:
        sums = np.zeros((self.n, self.masses.shape[1] + 1))
        np.cumsum(self.masses, axis=1, out=sums[:, 1:])
        return sums

    @cached_property
    def _has_shared_atoms(self) -> bool:
        """Whether all inputs have the same atoms."""
        points = self.points
        return points.strides[0] == 0 or bool((points == points[:1]).all())

    def _count_atoms(self, at: FloatArray, side: Side) -> NDArray[np.intp]:
        """Return how many atoms lie before each place."""
        if self._has_shared_atoms:
            row = self.points[0] if self.n else np.empty(0)
            return np.asarray(np.searchsorted(row, at, side=side))
        all_places = np.broadcast_to(at, (self.n, at.shape[1]))
        pairs = zip(self.points, all_places, strict=True)
        counts = [np.searchsorted(row, places, side=side) for row, places in pairs]
        return np.stack(counts)

    def scaled(self, scale: float, shift: float) -> Law:
        """Return the laws of ``shift + scale * output``, ``scale`` > 0.

        As floats compute it: a place is asked for the last output that lands there.
        """

        def rest(inputs: FloatArray, at: FloatArray) -> FloatArray:
            return self.rest(inputs, _largest_preimage(at, scale, shift))

        points = shift + scale * self.points
        low, high = shift + scale * self.low, shift + scale * self.high
        return replace(self, points=points, rest=rest, low=low, high=high)

    def clipped(self, low: float, high: float) -> Law:
        """Return the laws of the output clipped to [low, high]."""
        if self.low >= low and self.high <= high:
            return self
        edges = np.array([[low, high]])
        inner = np.where((self.points > low) & (self.points < high), self.masses, 0)
        ends = self.cdf(edges[:, :1]), 1 - self.below(edges[:, 1:])
        masses = np.hstack([ends[0], inner, np.maximum(ends[1], 0)])
        # The rest in the open interval.
        within = np.array([[low, np.nextafter(high, -inf)]])

        def rest(inputs: FloatArray, at: FloatArray) -> FloatArray:
            start = self.rest(inputs, within)[:, :1]
            mass = self.rest(inputs, np.minimum(at, within[:, 1:])) - start
            return np.where(at < low, 0.0, np.maximum(mass, 0.0))

        points = self._with_edges(low, high)
        return Law(points, masses, rest, self.inputs, low, high)

    def _with_edges(self, low: float, high: float) -> FloatArray:
        """Return the atoms clipped to [low, high], with an atom at each edge."""
        places = self.points[:1] if self._has_shared_atoms else self.points
        ends = [np.full((len(places), 1), edge) for edge in (low, high)]
        moved = np.hstack([ends[0], np.clip(places, low, high), ends[1]])
        return np.broadcast_to(moved, (self.n, moved.shape[1]))

    def select(self, which: slice | NDArray[np.intp]) -> Law:
        """Return the laws of some of the inputs."""
        return replace(
            self,
            points=self.points[which],
            masses=self.masses[which],
            inputs=None if self.inputs is None else self.inputs[which],
        )


def _largest_preimage(at: FloatArray, scale: float, shift: float) -> FloatArray:
    """Return the largest float x with ``shift + scale * x`` <= at.

    Rounding moves the quotient by a few units in the last place of what is subtracted;
    those are bracketed and halved until no float is left between.
    """
    slack = 2.0**-50 * (np.abs(at) + abs(shift)) / scale
    low = (at - shift) / scale - slack
    high = low + 2 * slack
    while True:
        middle = low + (high - low) / 2
        between = (middle > low) & (middle < high)
        if not between.any():
            return low
        fits = shift + scale * middle <= at
        low = np.where(between & fits, middle, low)
        high = np.where(between & ~fits, middle, high)


def atomic_law(points: ArrayLike, masses: ArrayLike) -> Law:
    """Return laws of atoms only: ``points`` (k,) or (n, k), ``masses`` (n, k)."""
    weights = np.asarray(masses, dtype=np.float64)
    where = np.broadcast_to(np.asarray(points, dtype=np.float64), weights.shape)
    low, high = (float(where.min()), float(where.max())) if where.size else (-inf, inf)
    return Law(where, weights, low=low, high=high)


def continuous_law(
    inputs: FloatArray, cdf: Rest, low: float = -inf, high: float = inf
) -> Law:
    """Return laws without atoms, given by P(output <= at | input).

    ``cdf`` takes ``inputs`` (n, 1) and places (n, m) or (1, m), and returns (n, m).
    """
    none = np.empty((len(inputs), 0))
    return Law(none, none, cdf, inputs, low, high)


@dataclass(frozen=True)
class Mixture:
    """Laws of n records of d values: mixtures of products of laws on the line.

    ``weights`` (n, m) add up to one in each row; ``terms`` are m tuples of d laws.
    """

    weights: FloatArray
    terms: Sequence[tuple[Law, ...]]

    @property
    def d(self) -> int:
        """The number of values of a record."""
        return len(self.terms[0])

    def box(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return P(low <= output <= high in each coordinate), (n,)."""
        total = np.zeros(len(self.weights))
        cached: dict[tuple[int, int], FloatArray] = {}
        for weight, term in zip(self.weights.T, self.terms, strict=True):
            share = weight.copy()
            for i, law in enumerate(term):
                if (i, id(law)) not in cached:
                    probability = law.between(low[:, [i]], high[:, [i]])
                    cached[i, id(law)] = probability[:, 0]
                share *= cached[i, id(law)]
            total += share
        return total

    def select(self, which: slice | NDArray[np.intp]) -> Mixture:
        """Return the laws of some of the records."""
        selected = {id(law): law.select(which) for term in self.terms for law in term}
        terms = [tuple(selected[id(law)] for law in term) for term in self.terms]
        return Mixture(self.weights[which], terms)


def product_law(*laws: Law) -> Mixture:
    """Return the laws of independent coordinates."""
    return Mixture(np.ones((laws[0].n, 1)), (laws,))
