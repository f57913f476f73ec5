"""Output laws as data: one-dimensional laws, and mixtures of products of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.validate import FloatArray

# More products than these are not written out.
MOST_TERMS = 1 << 12

# Stands in for infinity, which floats cannot subtract from itself.
_FAR = 1e150

Rest = Callable[[FloatArray, FloatArray], FloatArray]
Side = Literal["left", "right"]


def _nothing(_: FloatArray, at: FloatArray) -> FloatArray:
    return np.zeros_like(at)


@dataclass(frozen=True)
class Law:
    """Laws on the line, one for each of n inputs: atoms, and a rest.

    ``points`` (n, k), not decreasing in a row, have ``masses`` (n, k). ``rest`` takes
    the ``inputs`` (n, 1) and places (n, m) or (1, m), and returns P(the output is no
    atom and at most that), (n, m); it may be a step function. No output lies outside
    [``low``, ``high``].
    """

    points: FloatArray
    masses: FloatArray
    rest: Rest = _nothing
    inputs: FloatArray | None = None
    low: float = -inf
    high: float = inf

    @property
    def n(self) -> int:
        """The number of inputs."""
        return len(self.masses)

    def upto(self, at: ArrayLike) -> FloatArray:
        """Return P(output <= at), (n, m), for ``at`` (m,) or (n, m)."""
        where = np.atleast_2d(np.asarray(at, dtype=np.float64))
        return self._rest(where) + self._atoms(where, "right")

    def below(self, at: ArrayLike) -> FloatArray:
        """Return P(output < at), (n, m), for ``at`` (m,) or (n, m)."""
        where = np.atleast_2d(np.asarray(at, dtype=np.float64))
        return self._rest(np.nextafter(where, -inf)) + self._atoms(where, "left")

    def between(self, low: ArrayLike, high: ArrayLike) -> FloatArray:
        """Return P(low <= output <= high), (n, m)."""
        return np.maximum(self.upto(high) - self.below(low), 0.0)

    def _rest(self, at: FloatArray) -> FloatArray:
        given = np.empty((self.n, 0)) if self.inputs is None else self.inputs
        return self.rest(given, np.clip(at, -_FAR, _FAR))

    def _atoms(self, at: FloatArray, side: Side) -> FloatArray:
        places = self._reached(at, side)
        if len(places) < self.n:
            return np.asarray(np.take(self._sums, places[0], axis=1))
        return np.asarray(np.take_along_axis(self._sums, places, axis=1))

    @cached_property
    def _sums(self) -> FloatArray:
        sums = np.zeros((self.n, self.masses.shape[1] + 1))
        np.cumsum(self.masses, axis=1, out=sums[:, 1:])
        return sums

    @cached_property
    def _shared(self) -> bool:
        """Whether all inputs have the same atoms."""
        points = self.points
        return points.strides[0] == 0 or bool((points == points[:1]).all())

    def _reached(self, at: FloatArray, side: Side) -> NDArray[np.intp]:
        """Return how many atoms lie below (or at most at) each place, a row or n."""
        if self._shared:
            row = self.points[0] if self.n else np.empty(0)
            return np.asarray(np.searchsorted(row, at, side=side))
        wide = np.broadcast_to(at, (self.n, at.shape[1]))
        pairs = zip(self.points, wide, strict=True)
        return np.stack([np.searchsorted(row, each, side=side) for row, each in pairs])

    def mapped(self, scale: float, shift: float) -> Law:
        """Return the laws of ``shift + scale * output``, ``scale`` > 0.

        As floats compute it: a place is asked for the last output that lands there.
        """
        return replace(
            self,
            points=shift + scale * self.points,
            rest=lambda given, at: self.rest(given, _last(at, scale, shift)),
            low=shift + scale * self.low,
            high=shift + scale * self.high,
        )

    def clipped(self, low: float, high: float) -> Law:
        """Return the laws of the output moved into [low, high]: edges become atoms."""
        if self.low >= low and self.high <= high:
            return self
        edges = np.array([[low, high]])
        inner = np.where((self.points > low) & (self.points < high), self.masses, 0)
        ends = self.upto(edges[:, :1]), 1 - self.below(edges[:, 1:])
        masses = np.hstack([ends[0], inner, np.maximum(ends[1], 0)])
        return replace(
            self,
            points=self._with_edges(low, high),
            masses=masses,
            rest=_inside(self.rest, low, high),
            low=low,
            high=high,
        )

    def _with_edges(self, low: float, high: float) -> FloatArray:
        """Return the atoms moved into [low, high], between two at the edges."""
        one = self.points[:1] if self._shared else self.points
        ends = [np.full((len(one), 1), edge) for edge in (low, high)]
        moved = np.hstack([ends[0], np.clip(one, low, high), ends[1]])
        return np.broadcast_to(moved, (self.n, moved.shape[1]))

    def of(self, which: slice | NDArray[np.intp]) -> Law:
        """Return the laws of some of the inputs."""
        return replace(
            self,
            points=self.points[which],
            masses=self.masses[which],
            inputs=None if self.inputs is None else self.inputs[which],
        )


def _inside(rest: Rest, low: float, high: float) -> Rest:
    """Return P(low < output < high, no atom and at most that)."""
    edges = np.array([[low, np.nextafter(high, -inf)]])

    def inner(given: FloatArray, at: FloatArray) -> FloatArray:
        ends = rest(given, edges)
        reached = rest(given, np.minimum(at, edges[:, 1:])) - ends[:, :1]
        return np.where(at < low, 0.0, np.maximum(reached, 0.0))

    return inner


def _last(at: FloatArray, scale: float, shift: float) -> FloatArray:
    """Return the largest float x with ``shift + scale * x`` <= at, by bisection.

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


def atoms(points: ArrayLike, masses: ArrayLike) -> Law:
    """Return laws that are atoms only: ``points`` (k,) or (n, k), ``masses`` (n, k)."""
    weights = np.asarray(masses, dtype=np.float64)
    where = np.broadcast_to(np.asarray(points, dtype=np.float64), weights.shape)
    low, high = (float(where.min()), float(where.max())) if where.size else (-inf, inf)
    return Law(where, weights, low=low, high=high)


def smooth(inputs: FloatArray, cdf: Rest, low: float = -inf, high: float = inf) -> Law:
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
        """Return P(low <= output <= high in each coordinate), (n,), for (n, d)."""
        total = np.zeros(len(self.weights))
        known: dict[tuple[int, int], FloatArray] = {}
        for weight, term in zip(self.weights.T, self.terms, strict=True):
            share = weight.copy()
            for i, law in enumerate(term):
                if (i, id(law)) not in known:
                    found = law.between(low[:, [i]], high[:, [i]])
                    known[i, id(law)] = found[:, 0]
                share *= known[i, id(law)]
            total += share
        return total

    def of(self, which: slice | NDArray[np.intp]) -> Mixture:
        """Return the laws of some of the records."""
        known = {id(law): law.of(which) for term in self.terms for law in term}
        terms = [tuple(known[id(law)] for law in term) for term in self.terms]
        return Mixture(self.weights[which], terms)


def product(*laws: Law) -> Mixture:
    """Return the laws of independent coordinates."""
    return Mixture(np.ones((laws[0].n, 1)), (laws,))
