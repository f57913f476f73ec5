"""Output laws as data: one-dimensional laws, and mixtures of products of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.validate import FloatArray

# More products than these are not written out.
MOST_TERMS = 1 << 12

Rest = Callable[[FloatArray], FloatArray]


def _nothing(at: FloatArray) -> FloatArray:
    return np.zeros_like(at)


@dataclass(frozen=True)
class Law:
    """Laws on the line, one for each of n inputs: atoms, and a rest.

    ``points`` (n, k), increasing in each row, have ``masses`` (n, k). ``rest`` takes
    (n, m) and returns P(the output is no atom and at most that), (n, m). No output
    lies outside [``low``, ``high``].
    """

    points: FloatArray
    masses: FloatArray
    rest: Rest = _nothing
    low: float = -inf
    high: float = inf

    @property
    def n(self) -> int:
        """The number of inputs."""
        return len(self.masses)

    def upto(self, at: ArrayLike) -> FloatArray:
        """Return P(output <= at), (n, m), for ``at`` (m,) or (n, m)."""
        where = self._each(at)
        return self.rest(where) + self._atoms(where, closed=True)

    def below(self, at: ArrayLike) -> FloatArray:
        """Return P(output < at), (n, m), for ``at`` (m,) or (n, m)."""
        where = self._each(at)
        return self.rest(np.nextafter(where, -inf)) + self._atoms(where, closed=False)

    def between(self, low: ArrayLike, high: ArrayLike) -> FloatArray:
        """Return P(low <= output <= high), (n, m)."""
        return np.maximum(self.upto(high) - self.below(low), 0.0)

    def _each(self, at: ArrayLike) -> FloatArray:
        given = np.asarray(at, dtype=np.float64)
        return np.broadcast_to(given, (self.n, given.shape[-1]))

    def _atoms(self, at: FloatArray, *, closed: bool) -> FloatArray:
        side: Literal["left", "right"] = "right" if closed else "left"
        sums = np.zeros((self.n, self.masses.shape[1] + 1))
        np.cumsum(self.masses, axis=1, out=sums[:, 1:])
        places = _searched(self.points, at, side)
        return np.asarray(np.take_along_axis(sums, places, axis=1))

    def mapped(self, scale: float, shift: float) -> Law:
        """Return the laws of ``shift + scale * output``, ``scale`` > 0."""
        return Law(
            shift + scale * self.points,
            self.masses,
            lambda at: self.rest((at - shift) / scale),
            shift + scale * self.low,
            shift + scale * self.high,
        )

    def clipped(self, low: float, high: float) -> Law:
        """Return the laws of the output moved into [low, high]: edges become atoms."""
        if self.low >= low and self.high <= high:
            return self
        edges = np.broadcast_to([[low, high]], (self.n, 2))
        ends = np.hstack([self.upto([low]), 1 - self.below([high])])
        inner = (self.points > low) & (self.points < high)
        points = np.hstack([np.clip(self.points, low, high), edges])
        masses = np.hstack([self.masses * inner, ends])
        order = np.argsort(points, axis=1, kind="stable")
        floor, top = self.rest(edges)[:, :1], self.rest(np.nextafter(edges, low))[:, 1:]

        def rest(at: FloatArray) -> FloatArray:
            inside = np.clip(self.rest(at), floor, top) - floor
            return np.where(at < low, 0.0, np.where(at >= high, top - floor, inside))

        return Law(
            np.take_along_axis(points, order, axis=1),
            np.take_along_axis(masses, order, axis=1),
            rest,
            low,
            high,
        )

    def of(self, which: slice) -> Law:
        """Return the laws of some inputs; ``rest`` is asked for all of them still."""
        n = self.n

        def rest(at: FloatArray) -> FloatArray:
            full = np.full((n, at.shape[1]), -inf)
            full[which] = at
            return self.rest(full)[which]

        return Law(self.points[which], self.masses[which], rest, self.low, self.high)


def _searched(
    points: FloatArray, at: FloatArray, side: Literal["left", "right"]
) -> NDArray[np.intp]:
    """Return how many points of each row lie below (or at most) each of its places."""
    if len(points) and (points == points[:1]).all():
        return np.asarray(np.searchsorted(points[0], at, side=side))
    pairs = zip(points, at, strict=True)
    rows = [np.searchsorted(row, places, side=side) for row, places in pairs]
    return np.array(rows, dtype=np.intp).reshape(at.shape)


def atoms(points: ArrayLike, masses: ArrayLike) -> Law:
    """Return laws that are atoms only: ``points`` (k,) or (n, k), ``masses`` (n, k)."""
    weights = np.asarray(masses, dtype=np.float64)
    where = np.broadcast_to(np.asarray(points, dtype=np.float64), weights.shape)
    low, high = (float(where.min()), float(where.max())) if where.size else (-inf, inf)
    return Law(where, weights, low=low, high=high)


def smooth(n: int, cdf: Rest, low: float = -inf, high: float = inf) -> Law:
    """Return laws without atoms, given by P(output <= at), (n, m) -> (n, m)."""
    return Law(np.empty((n, 0)), np.empty((n, 0)), cdf, low, high)


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
        edges = [(low[:, [i]], high[:, [i]]) for i in range(self.d)]
        sides = [
            np.prod(
                [law.between(*ends) for law, ends in zip(term, edges, strict=True)],
                axis=0,
            )
            for term in self.terms
        ]
        return np.asarray(np.sum(self.weights * np.hstack(sides), axis=1))


def product(*laws: Law) -> Mixture:
    """Return the laws of independent coordinates."""
    return Mixture(np.ones((laws[0].n, 1)), (laws,))
