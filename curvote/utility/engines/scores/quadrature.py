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
from curvote.utility.engines.scores.winning import ValueLaw, winning_shares
from curvote.validate import FloatArray

# What `exact` means here, in shares; the tests hold it against closed forms.
TOLERANCE = 1e-5
# Points of the first look, and those that each later one adds.
LOOK_POINTS = (33, 96, 128, 192)
# Curved boundaries, whose shares end in square roots, take so many times as many.
CURVED = 2
# Mass beyond the ends of an unbounded law, on each side.
CUT_MASS = 1e-9

Integrand = Callable[[FloatArray], FloatArray]


def shares_of_one(scores: Scores, law: Law) -> FloatArray:
    """Return the shares of the classes, (n, K), for scores of one value."""
    return winning_shares(scores.alone(), ValueLaw.with_atoms(law))[:, 0]


def shares_of_two(scores: Scores, laws: tuple[Law, Law]) -> FloatArray:
    """Return the shares of the classes, (n, K), for two independent values."""
    first, second = laws
    first_rest, second_rest = ValueLaw.rest(first), ValueLaw.rest(second)
    at = winning_shares(scores.along(1, 0, first.points), ValueLaw.with_atoms(second))
    won = _weighted_sum(first.masses, at)
    if not first_rest.empty and second.points.shape[1]:
        won += _weighted_sum(
            second.masses, winning_shares(scores.along(0, 1, second.points), first_rest)
        )
    if not first_rest.empty and not second_rest.empty:
        won += _continuous_shares(scores, first_rest, second_rest)
    return won


def _continuous_shares(
    scores: Scores, first_rest: ValueLaw, second_rest: ValueLaw
) -> FloatArray:
    """Return the shares where both values have no atom."""
    along = partial(scores.along, 1, 0)
    later_shares = integrate(
        first_rest,
        lambda at: winning_shares(along(at), second_rest)[..., 1:],
        CURVED if scores.curved else 1,
    )
    total = first_rest.total * second_rest.total
    first = np.maximum(total - later_shares.sum(axis=1, keepdims=True), 0)
    return np.hstack([first, later_shares])


def _weighted_sum(masses: FloatArray, at: FloatArray) -> FloatArray:
    """Return the sum of shares weighted by masses, (n, K)."""
    return np.asarray(np.einsum("nm,nmk->nk", masses, at))


@dataclass(frozen=True)
class _Samples:
    """Sample points (n, m), the law's mass up to each, and shares (n, m, K)."""

    points: FloatArray
    upto: FloatArray
    at: FloatArray

    def merge(self, other: _Samples) -> _Samples:
        """Return both sets of samples as one, in order."""
        points = np.hstack([self.points, other.points])
        upto, at = np.hstack([self.upto, other.upto]), np.hstack([self.at, other.at])
        order = np.argsort(points, axis=1, kind="stable")
        return _Samples(
            np.take_along_axis(points, order, axis=1),
            np.take_along_axis(upto, order, axis=1),
            np.take_along_axis(at, order[..., None], axis=1),
        )

    def integral(self) -> FloatArray:
        """Return the trapezoidal sum, (n, K), corrected where the share is smooth."""
        mass = np.maximum(np.diff(self.upto), 0)
        middle = (self.at[:, 1:] + self.at[:, :-1]) / 2
        return _weighted_sum(
            mass, middle - _trapezoid_error(mass, np.diff(self.at, axis=1))
        )


def integrate(over: ValueLaw, integrand: Integrand, dense: int = 1) -> FloatArray:
    """Return the integral of an integrand over a law, (n, K).

    Each look has ``dense`` times as many points.
    """

    def sample(points: FloatArray) -> _Samples:
        return _Samples(points, over.upto(points), integrand(points))

    samples = sample(np.linspace(*law_ends(over), dense * LOOK_POINTS[0], axis=-1))
    for number in LOOK_POINTS[1:]:
        samples = samples.merge(sample(_new_points(samples, dense * number)))
    return samples.integral()


def _trapezoid_error(mass: FloatArray, change: FloatArray) -> FloatArray:
    """Return the error of the trapezoidal rule for parabolas, cell by cell.

    Of the parabolas through either neighbour the flatter one; none where they bend in
    two ways, as at a kink.
    """
    wide = np.maximum(mass, 1e-12)[..., None]
    slope = change / wide
    bend = 2 * np.diff(slope, axis=1) / (wide[:, 1:] + wide[:, :-1])
    before, after = bend[:, :-1], bend[:, 1:]
    flatter = np.where(np.abs(before) < np.abs(after), before, after)
    inner = np.where(before * after > 0, flatter, 0.0)
    return np.pad(inner, ((0, 0), (1, 1), (0, 0))) * mass[..., None] ** 2 / 12


def _new_points(samples: _Samples, number: int) -> FloatArray:
    """Return new points, most where the share bends over the mass.

    A cell's sum is off by the area of the bend, at most mass x change.
    """
    mass, change = np.maximum(np.diff(samples.upto), 0), np.diff(samples.at, axis=1)
    weight = np.cbrt(_cell_bends(mass, change))
    weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    spread = np.sqrt(mass * np.abs(change).max(axis=-1))
    weight += 0.5 * spread + 0.05 * mass + 1e-9 / mass.shape[1]
    sums = np.zeros(samples.points.shape)
    np.cumsum(weight, axis=1, out=sums[:, 1:])
    return _invert_levels(sums / sums[:, -1:], samples.points, number)


def _cell_bends(mass: FloatArray, change: FloatArray) -> FloatArray:
    """Return the departure of each cell and its neighbours from a line."""
    weight = mass[..., None]
    cross = np.abs(weight[:, 1:] * change[:, :-1] - weight[:, :-1] * change[:, 1:])
    between = np.pad(cross.max(axis=-1), ((0, 0), (1, 1)))
    return np.asarray(np.maximum(between[:, 1:], between[:, :-1]))


def _invert_levels(sums: FloatArray, points: FloatArray, number: int) -> FloatArray:
    """Return the points at which ``sums``, from 0 to 1, reach even levels."""
    n, m = sums.shape
    levels = (np.arange(number) + 0.5) / number
    rows = np.arange(n)[:, None]
    positions = np.searchsorted((sums + 2 * rows).ravel(), (levels + 2 * rows).ravel())
    after = np.clip(positions.reshape(n, number) - rows * m, 1, m - 1)
    start, stop = (np.take_along_axis(sums, i, 1) for i in (after - 1, after))
    low, high = (np.take_along_axis(points, i, 1) for i in (after - 1, after))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip((levels - start) / (stop - start), 0, 1)
    return np.asarray(low + np.nan_to_num(share) * (high - low))


def law_ends(spread: ValueLaw) -> tuple[FloatArray, FloatArray]:
    """Return ends (n,) beyond which each law has `CUT_MASS` of mass at most."""
    low, high = spread.law.low, spread.law.high
    n, far = spread.law.n, 1.0
    while not np.isfinite(low) or not np.isfinite(high):
        ends = spread.upto(np.tile([-far, far], (n, 1)))
        if not np.isfinite(low) and (ends[:, 0] <= CUT_MASS).all():
            low = -far
        if not np.isfinite(high) and (ends[:, 1:] >= spread.total - CUT_MASS).all():
            high = far
        far *= 2
    return np.full(n, low), np.full(n, high)
