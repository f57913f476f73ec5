"""Shares of the classes when one value or two are noised: atoms, and quadrature.

Atoms are added up as they are. What is left of both laws is an integral of the share
at a fixed first value over that value's law. Each look at it adds points where the
share bends most over the mass; windows' edges are found so. The trapezoidal rule, with
a parabola's correction where the share is smooth, is off by less than `TOLERANCE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from curvote.mechanisms.law import Law
from curvote.utility.engines.scores.forms import Scores
from curvote.utility.engines.scores.winning import Spread, shares
from curvote.validate import FloatArray

# What `exact` means here, in shares; the tests hold it against closed forms.
TOLERANCE = 1e-5
# Points of the first look, and those that each later one adds.
LOOKS = (33, 96, 128, 192)
# Curved boundaries, whose shares end in square roots, take so many times as many.
CURVED = 2
# Mass beyond the ends of an unbounded law, on each side.
CUT = 1e-9

Given = Callable[[FloatArray], FloatArray]


def one(scores: Scores, law: Law) -> FloatArray:
    """Return the shares of the classes, (n, K), for scores of one value."""
    return shares(scores.alone(), Spread.whole(law))[:, 0]


def two(scores: Scores, laws: tuple[Law, Law]) -> FloatArray:
    """Return the shares of the classes, (n, K), for two independent values."""
    first, second = laws
    left, right = Spread.rest(first), Spread.rest(second)
    at = shares(scores.along(1, 0, first.points), Spread.whole(second))
    won = _weighed(first.masses, at)
    if not left.empty and second.points.shape[1]:
        won += _weighed(second.masses, shares(scores.along(0, 1, second.points), left))
    if not left.empty and not right.empty:
        won += _smooth(scores, left, right)
    return won


def _smooth(scores: Scores, left: Spread, right: Spread) -> FloatArray:
    """Both without atoms; the first class has what the others leave."""
    along = partial(scores.along, 1, 0)
    others = integral(
        left,
        lambda at: shares(along(at), right)[..., 1:],
        CURVED if scores.curved else 1,
    )
    all_of_it = left.total * right.total
    first = np.maximum(all_of_it - others.sum(axis=1, keepdims=True), 0)
    return np.hstack([first, others])


def _weighed(masses: FloatArray, at: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nm,nmk->nk", masses, at))


@dataclass(frozen=True)
class _Look:
    """Points (n, m), the law's mass up to each, and the shares given it (n, m, K)."""

    points: FloatArray
    upto: FloatArray
    at: FloatArray

    def with_those(self, other: _Look) -> _Look:
        """Return both looks as one, in order."""
        points = np.hstack([self.points, other.points])
        upto, at = np.hstack([self.upto, other.upto]), np.hstack([self.at, other.at])
        order = np.argsort(points, axis=1, kind="stable")
        return _Look(
            np.take_along_axis(points, order, axis=1),
            np.take_along_axis(upto, order, axis=1),
            np.take_along_axis(at, order[..., None], axis=1),
        )

    def integral(self) -> FloatArray:
        """Return the trapezoidal sum, (n, K), corrected where the share is smooth."""
        mass = np.maximum(np.diff(self.upto), 0)
        middle = (self.at[:, 1:] + self.at[:, :-1]) / 2
        return _weighed(mass, middle - _sagged(mass, np.diff(self.at, axis=1)))


def integral(over: Spread, given: Given, dense: int = 1) -> FloatArray:
    """Return the integral of ``given``, (n, m) -> (n, m, K), over a law, (n, K).

    Each look has ``dense`` times as many points.
    """

    def look(points: FloatArray) -> _Look:
        return _Look(points, over.upto(points), given(points))

    seen = look(np.linspace(*reach(over), dense * LOOKS[0], axis=-1))
    for number in LOOKS[1:]:
        seen = seen.with_those(look(_between(seen, dense * number)))
    return seen.integral()


def _sagged(mass: FloatArray, change: FloatArray) -> FloatArray:
    """Return how far the mean of a parabola in the mass lies below that of its ends.

    Of the parabolas through either neighbour the flatter one; none where they bend in
    two ways, as at a kink.
    """
    wide = np.maximum(mass, 1e-12)[..., None]
    slope = change / wide
    bend = 2 * np.diff(slope, axis=1) / (wide[:, 1:] + wide[:, :-1])
    left, right = bend[:, :-1], bend[:, 1:]
    flatter = np.where(np.abs(left) < np.abs(right), left, right)
    inner = np.where(left * right > 0, flatter, 0.0)
    return np.pad(inner, ((0, 0), (1, 1), (0, 0))) * mass[..., None] ** 2 / 12


def _between(seen: _Look, number: int) -> FloatArray:
    """Return more points: most where the share bends over the mass, some everywhere.

    A cell's sum is off by the area of the bend, at most mass x change.
    """
    mass, change = np.maximum(np.diff(seen.upto), 0), np.diff(seen.at, axis=1)
    weight = np.cbrt(_bends(mass, change))
    weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    spread = np.sqrt(mass * np.abs(change).max(axis=-1))
    weight += 0.5 * spread + 0.05 * mass + 1e-9 / mass.shape[1]
    sums = np.zeros(seen.points.shape)
    np.cumsum(weight, axis=1, out=sums[:, 1:])
    return _interpolated(sums / sums[:, -1:], seen.points, number)


def _bends(mass: FloatArray, change: FloatArray) -> FloatArray:
    """Return how far each cell and its neighbours are from one straight line."""
    weight = mass[..., None]
    cross = np.abs(weight[:, 1:] * change[:, :-1] - weight[:, :-1] * change[:, 1:])
    between = np.pad(cross.max(axis=-1), ((0, 0), (1, 1)))
    return np.asarray(np.maximum(between[:, 1:], between[:, :-1]))


def _interpolated(sums: FloatArray, points: FloatArray, number: int) -> FloatArray:
    """Return the places at which ``sums``, from 0 to 1, reach even levels."""
    n, m = sums.shape
    levels = (np.arange(number) + 0.5) / number
    rows = np.arange(n)[:, None]
    found = np.searchsorted((sums + 2 * rows).ravel(), (levels + 2 * rows).ravel())
    after = np.clip(found.reshape(n, number) - rows * m, 1, m - 1)
    start, stop = (np.take_along_axis(sums, i, 1) for i in (after - 1, after))
    low, high = (np.take_along_axis(points, i, 1) for i in (after - 1, after))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip((levels - start) / (stop - start), 0, 1)
    return np.asarray(low + np.nan_to_num(share) * (high - low))


def reach(spread: Spread) -> tuple[FloatArray, FloatArray]:
    """Return ends (n,) beyond which each law has `CUT` of mass at most."""
    low, high = spread.law.low, spread.law.high
    n, far = spread.law.n, 1.0
    while not np.isfinite(low) or not np.isfinite(high):
        ends = spread.upto(np.tile([-far, far], (n, 1)))
        if not np.isfinite(low) and (ends[:, 0] <= CUT).all():
            low = -far
        if not np.isfinite(high) and (ends[:, 1:] >= spread.total - CUT).all():
            high = far
        far *= 2
    return np.full(n, low), np.full(n, high)
