"""Scores of classes, and the share that each wins when the values are noised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product as every

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.mechanisms.base import Law


@dataclass(frozen=True)
class ScoreLine:
    """Scores of K classes as quadratics of one value, for n records, m settings.

    ``constant`` and ``linear`` are (n, m, K), ``square`` is (K,).
    """

    constant: FloatArray
    linear: FloatArray
    square: FloatArray

    def at(self, values: FloatArray) -> FloatArray:
        """Return the scores at ``values`` (n, m), (n, m, K)."""
        v = values[..., None]
        return np.asarray(self.constant + (self.linear + self.square * v) * v)


@dataclass(frozen=True)
class Scores:
    """Scores of K classes: constant + v @ linear + v' square v, v (s,) sensitive.

    ``constant`` (n, K); ``linear`` (n, s, K), or (1, s, K) where records share it;
    ``square`` (s, s, K), symmetric. The largest score answers;
    of equal ones the first, as argmax has it.
    """

    constant: FloatArray
    linear: FloatArray
    square: FloatArray

    @property
    def s(self) -> int:
        """Number of sensitive values."""
        return int(self.square.shape[0])

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return int(self.constant.shape[1])

    def at(self, values: FloatArray) -> FloatArray:
        """Return the scores at ``values`` (n, s), (n, K)."""
        linear = np.broadcast_to(self.linear, (len(values), *self.linear.shape[1:]))
        straight = np.einsum("ns,nsk->nk", values, linear)
        quadratic = np.einsum("ns,nt,stk->nk", values, values, self.square)
        return np.asarray(self.constant + straight + quadratic)

    def of(self, rows: slice | NDArray[np.intp]) -> Scores:
        """Return the scores of some records."""
        shared = len(self.linear) == 1
        linear = self.linear if shared else self.linear[rows]
        return Scores(self.constant[rows], linear, self.square)

    def fix_values(self, values: FloatArray, free: list[int]) -> Scores:
        """Return the scores of the ``free`` values, the others fixed at ``values``.

        What stands in ``values`` for the free ones does not matter.
        """
        fixed = np.array(values, dtype=np.float64)
        fixed[:, free] = 0.0
        linear = self.linear + 2 * np.einsum("nt,stk->nsk", fixed, self.square)
        constant = self.at(fixed)
        return Scores(constant, linear[:, free], self.square[np.ix_(free, free)])

    def along(self, place: int, other: int, at: FloatArray) -> ScoreLine:
        """Return the scores along a value, the ``other`` one at ``at`` (n, m)."""
        v = at[..., None]
        first, second = self.linear[:, None, other], self.linear[:, None, place]
        constant = (first + self.square[other, other] * v) * v
        constant += self.constant[:, None]
        cross = self.square[place, other]
        linear = second + 2 * cross * v if cross.any() else second
        return ScoreLine(constant, linear, self.square[place, place])

    def alone(self) -> ScoreLine:
        """Return the scores along their only value, m = 1."""
        return ScoreLine(self.constant[:, None], self.linear, self.square[0, 0])

    def active_values(self) -> list[int]:
        """Return the indices of values that move some difference of scores."""
        curved = (self.square != self.square[..., :1]).any(axis=(1, 2))
        straight = (self.linear != self.linear[..., :1]).any(axis=(0, 2))
        return [int(i) for i in np.flatnonzero(curved | straight)]


def class_wins(
    scores: Scores, clean: NDArray[np.int64], low: FloatArray, high: FloatArray
) -> NDArray[np.bool_]:
    """Return for each record whether class ``clean`` (n,) wins in its whole box.

    The box is ``low`` to ``high``, (n, s). A tie is won by the first class.
    """
    free = scores.active_values()
    scores = scores.fix_values(np.zeros_like(low), free)
    low, high = low[:, free], high[:, free]
    wins = np.ones(len(clean), dtype=bool)
    for first, second in every(range(scores.classes), repeat=2):
        if first != second:
            lead = _least_lead(scores, first, second, low, high)
            won = lead >= 0 if first < second else lead > 0
            wins &= won | (clean != first)
    return wins


def _least_lead(
    scores: Scores, first: int, second: int, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least lead of one class over another in each box, (n,).

    Exact for straight lines, for sums of one-value terms, and for two values; else
    nothing is above it.
    """
    constant, linear, square = (
        part[..., first] - part[..., second]
        for part in (scores.constant, scores.linear, scores.square)
    )
    linear = np.broadcast_to(linear, low.shape)
    if not (square - np.diag(np.diag(square))).any():
        least = _least_separable(linear, np.diag(square), low, high)
        return np.asarray(constant + least)
    edges = []
    for place, end in every((0, 1), (low, high)):
        v, free = end[:, place], 1 - place
        along = linear[:, [free]] + 2 * square[0, 1] * v[:, None]
        edge_part = (linear[:, place] + square[place, place] * v) * v
        box = low[:, [free]], high[:, [free]]
        edges.append(edge_part + _least_separable(along, square[[free], [free]], *box))
    if np.linalg.det(square) > 0:  # else nothing is least inside
        at = np.linalg.solve(2 * square, -linear.T).T
        inside = ((at >= low) & (at <= high)).all(axis=1)
        bottom = np.einsum("ns,ns->n", linear, at) / 2
        edges.append(np.where(inside, bottom, np.inf))
    return np.asarray(constant + np.min(edges, axis=0))


def _least_separable(
    linear: FloatArray, square: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least of sum of linear v + square v^2, value by value."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = np.where(square > 0, np.clip(-linear / (2 * square), low, high), low)
    values = [(linear + square * v) * v for v in (low, high, bottom)]
    return np.asarray(np.min(values, axis=0).sum(axis=1))


@dataclass(frozen=True)
class ValueLaw:
    """Law of a value, or its part without atoms; ``total`` (n, 1) is its mass."""

    law: Law
    total: FloatArray

    @classmethod
    def with_atoms(cls, law: Law) -> ValueLaw:
        """Return the law with its atoms."""
        return cls(law, np.ones((law.n, 1)))

    @classmethod
    def rest(cls, law: Law) -> ValueLaw:
        """Return the law without its atoms."""
        none = np.empty((law.n, 0))
        remainder = np.maximum(1 - law.masses.sum(axis=1, keepdims=True), 0.0)
        return cls(replace(law, points=none, masses=none), remainder)

    @property
    def empty(self) -> bool:
        """Whether no record has any mass here, up to rounding."""
        return not (self.total > 1e-12).any()

    def upto(self, at: FloatArray) -> FloatArray:
        """Return P(value <= at) for ``at`` (n, m), infinite ones too."""
        inside = self.law.cdf(np.clip(at, -_FAR, _FAR))
        return np.where(at == np.inf, self.total, inside * (at > -np.inf))

    def below(self, at: FloatArray) -> FloatArray:
        """Return P(value < at) for ``at`` (n, m), infinite ones too."""
        inside = self.law.below(np.clip(at, -_FAR, _FAR))
        return np.where(at == np.inf, self.total, inside * (at > -np.inf))


# Nothing lies beyond, and nothing overflows at it.
_FAR = 1e30


def winning_shares(along: ScoreLine, spread: ValueLaw) -> FloatArray:
    """Return the chance that each class wins, (n, m, K), for a law of the value."""
    if (along.square != along.square[0]).any():  # they differ by curved lines
        return _quadratic_shares(along, spread)
    won = np.zeros(along.constant.shape)
    shape, classes = along.constant.shape[:-1], along.constant.shape[-1]
    for place in range(1, classes):
        # The ends (n, m) of the interval where the class beats all others.
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        for other in range(classes):
            if other != place:
                below, above = _winning_half_line(along, place, other)
                low, high = np.maximum(low, below), np.minimum(high, above)
        upper = spread.total if (high == np.inf).all() else spread.upto(high)
        lower = 0.0 if (low == -np.inf).all() else spread.below(low)
        won[..., place] = np.maximum(upper - lower, 0.0)
    won[..., 0] = np.maximum(spread.total - won[..., 1:].sum(axis=-1), 0.0)
    return won


def _winning_half_line(
    along: ScoreLine, first: int, second: int
) -> tuple[FloatArray, FloatArray]:
    """Return the half-line on which one class beats another.

    An open end is written as the closed one of the next number.
    """
    lead = along.constant[..., first] - along.constant[..., second]
    slope = along.linear[..., first] - along.linear[..., second]
    slope = np.broadcast_to(slope, lead.shape)
    ties = first < second
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = -lead / slope
    always = (lead >= 0) if ties else (lead > 0)
    flat = np.where(always, -np.inf, np.inf)
    rise = meet if ties else np.nextafter(meet, np.inf)
    fall = meet if ties else np.nextafter(meet, -np.inf)
    low = np.where(slope > 0, rise, np.where(slope < 0, -np.inf, flat))
    return low, np.where(slope < 0, fall, np.inf)


def _quadratic_shares(along: ScoreLine, spread: ValueLaw) -> FloatArray:
    first, second = np.triu_indices(along.constant.shape[-1], 1)
    c = along.constant[..., first] - along.constant[..., second]
    b = along.linear[..., first] - along.linear[..., second]
    a = along.square[first] - along.square[second]
    with np.errstate(divide="ignore", invalid="ignore"):
        half = -(b + np.copysign(np.sqrt(b * b - 4 * a * c), b)) / 2
        roots = np.concatenate([half / a, c / half], axis=-1)
    at = np.sort(np.where(np.isfinite(roots), roots, np.inf), axis=-1)
    ends = np.full((*at.shape[:2], 1), np.inf)
    edges = np.concatenate([-ends, at, ends], axis=2)
    flat = edges.reshape(len(edges), -1)
    upto = spread.upto(flat).reshape(edges.shape)
    below = spread.below(flat).reshape(edges.shape)
    gaps = np.maximum(below[..., 1:] - upto[..., :-1], 0.0)
    low, high = edges[..., :-1], edges[..., 1:]
    lower = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high - 1), low)
    upper = np.where(np.isinf(high), np.where(np.isinf(low), 0.0, low + 1), high)
    wide = lower - np.abs(lower) * np.isinf(low), upper + np.abs(upper) * np.isinf(high)
    won = _won_mass(along, np.asarray(np.nan_to_num((wide[0] + wide[1]) / 2)), gaps)
    if spread.law.masses.shape[1]:
        # Equal crossings are one point.
        points = (upto - below)[..., 1:-1] * (edges[..., 1:-1] > edges[..., :-2])
        won += _won_mass(along, np.clip(at, -_FAR, _FAR), points)
    return won


def _won_mass(along: ScoreLine, at: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the mass of points (n, m, p) at which each class wins, (n, m, K)."""
    classes = np.arange(along.constant.shape[-1])
    won = np.zeros_like(along.constant)
    for place in range(at.shape[-1]):
        best = np.argmax(along.at(at[..., place]), axis=-1)
        won += mass[..., [place]] * (best[..., None] == classes)
    return won


# What `exact` means here, in shares; the tests hold it against closed forms.
TOLERANCE = 1e-5
# Points of the first look, and those that each later one adds.
LOOK_POINTS = (33, 96, 128, 192)
# Curved boundaries, whose shares end in square roots, take so many times as many.
CURVED = 2
# Mass beyond the ends of an unbounded law, on each side.
CUT_MASS = 1e-9

Integrand = Callable[[FloatArray], FloatArray]


def shares_of_two(scores: Scores, laws: tuple[Law, Law]) -> FloatArray:
    """Return the shares of the classes, (n, K), for two independent values."""
    first, second = laws
    first_rest, second_rest = ValueLaw.rest(first), ValueLaw.rest(second)
    at = winning_shares(scores.along(1, 0, first.points), ValueLaw.with_atoms(second))
    won = _weighted_sum(first.masses, at)
    if not first_rest.empty and second.points.shape[1]:
        at = winning_shares(scores.along(0, 1, second.points), first_rest)
        won += _weighted_sum(second.masses, at)
    if not first_rest.empty and not second_rest.empty:

        def later_classes(at: FloatArray) -> FloatArray:
            return winning_shares(scores.along(1, 0, at), second_rest)[..., 1:]

        curved = bool((scores.square != scores.square[..., :1]).any())
        dense = CURVED if curved else 1
        later_shares = integrate(first_rest, later_classes, dense)
        total = first_rest.total * second_rest.total
        first_share = np.maximum(total - later_shares.sum(axis=1, keepdims=True), 0)
        won += np.hstack([first_share, later_shares])
    return won


def _weighted_sum(masses: FloatArray, at: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nm,nmk->nk", masses, at))


def integrate(over: ValueLaw, integrand: Integrand, dense: int = 1) -> FloatArray:
    """Return the integral of an integrand over a law, (n, K).

    Each look has ``dense`` times as many points. Of sample points (n, m), the law's
    mass up to each, and shares (n, m, K) it is the trapezoidal sum, corrected where the
    share is smooth.
    """
    points = np.linspace(*law_ends(over), dense * LOOK_POINTS[0], axis=-1)
    upto, at = over.upto(points), integrand(points)
    for number in LOOK_POINTS[1:]:
        more = _new_points(points, upto, at, dense * number)
        points = np.hstack([points, more])
        order = np.argsort(points, axis=1, kind="stable")
        upto, at = np.hstack([upto, over.upto(more)]), np.hstack([at, integrand(more)])
        points, upto = (np.take_along_axis(a, order, axis=1) for a in (points, upto))
        at = np.take_along_axis(at, order[..., None], axis=1)
    mass = np.maximum(np.diff(upto), 0)
    middle, change = (at[:, 1:] + at[:, :-1]) / 2, np.diff(at, axis=1)
    wide = np.maximum(mass, 1e-12)[..., None]
    slope = change / wide
    bend = 2 * np.diff(slope, axis=1) / (wide[:, 1:] + wide[:, :-1])
    before, after = bend[:, :-1], bend[:, 1:]
    flatter = np.where(np.abs(before) < np.abs(after), before, after)
    inner = np.where(before * after > 0, flatter, 0.0)
    bends = np.pad(inner, ((0, 0), (1, 1), (0, 0)))
    return _weighted_sum(mass, middle - (bends * mass[..., None] ** 2 / 12))


def _new_points(
    points: FloatArray, upto: FloatArray, at: FloatArray, number: int
) -> FloatArray:
    """Return new points, most where the share bends over the mass.

    A cell's sum is off by the area of the bend, at most mass x change.
    """
    mass, change = np.maximum(np.diff(upto), 0), np.diff(at, axis=1)
    # The departure of each cell and its neighbours from a line.
    wide = mass[..., None]
    cross = np.abs(wide[:, 1:] * change[:, :-1] - wide[:, :-1] * change[:, 1:])
    between = np.pad(cross.max(axis=-1), ((0, 0), (1, 1)))
    weight = np.cbrt(np.maximum(between[:, 1:], between[:, :-1]))
    weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    spread = np.sqrt(mass * np.abs(change).max(axis=-1))
    weight += 0.5 * spread + 0.05 * mass + 1e-9 / mass.shape[1]
    sums = np.zeros(points.shape)
    np.cumsum(weight, axis=1, out=sums[:, 1:])
    return _invert_levels(sums / sums[:, -1:], points, number)


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


# The width that brackets aim at, and the most steps of one term's lattice.
WIDTH = 1e-3
MOST_STEPS = 1 << 17
# Mass that may be lost at each end of each sum; it is within the bracket.
LOST_MASS = 1e-9

Term = tuple[int, FloatArray]


def bracket_positive(
    constant: FloatArray, slopes: FloatArray, laws: tuple[Law, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper P(constant + sum of slopes x values > 0), (n,).

    ``constant`` is (n,), ``slopes`` (k,) are those of all records, none is 0.
    """
    spans = []  # of slope x value for all records, up to lost mass
    for law, slope in zip(laws, slopes, strict=True):
        below, above = law_ends(ValueLaw.with_atoms(law))
        ends = slope * below.min(), slope * above.max()
        spans.append((min(ends), max(ends)))
    longest = max(high - low for low, high in spans)
    step = sum(high - low for low, high in spans) / 2**12
    while True:
        step = max(step, longest / MOST_STEPS)
        low, high = _bracket_at_step(constant, slopes, laws, spans, step)
        excess = float((high - low).max()) / WIDTH
        if excess <= 1 or step <= longest / MOST_STEPS:
            return low, high
        step /= max(1.25 * excess, 2)


def _bracket_at_step(
    constant: FloatArray,
    slopes: FloatArray,
    laws: tuple[Law, ...],
    spans: list[tuple[float, float]],
    step: float,
) -> tuple[FloatArray, FloatArray]:
    terms = []  # slope x value rounded down: first place, and masses
    for law, slope, span in zip(laws, slopes, spans, strict=True):
        first, last = (int(np.floor(end / step)) for end in span)
        edges = np.arange(first, last + 2) * step / slope
        sums = law.below(edges) if slope > 0 else 1 - law.cdf(edges)
        terms.append(_trim(first, np.maximum(np.diff(sums), 0)))
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [reduce(_convolve, pair) for pair in pairs]
    start, mass = terms[0]
    below = np.hstack([np.zeros((len(mass), 1)), np.cumsum(mass, axis=1)])
    # A sum at place L lies within [start + L, start + L + k], in steps.
    need = -constant / step - start
    certain = np.floor(need + 1e-9) + 1
    possible = np.floor(need - len(slopes) - 1e-9) + 1
    low, high = (
        1 - np.take_along_axis(below, inside.astype(int)[:, None], axis=1)[:, 0]
        for inside in np.clip((certain, possible), 0, below.shape[1] - 1)
    )
    lost = np.maximum(1 - below[:, -1], 0)
    return np.clip(low - lost, 0, 1), np.clip(high, 0, 1)


def _convolve(first: Term, second: Term) -> Term:
    from scipy.signal import fftconvolve

    mass = np.maximum(fftconvolve(first[1], second[1], axes=1), 0)
    return _trim(first[0] + second[0], mass)


def _trim(first: int, mass: FloatArray) -> Term:
    """Return a term without ends where no record has more than `LOST_MASS`."""
    from_start = (np.cumsum(mass, axis=1) > LOST_MASS).any(axis=0)
    from_end = (np.cumsum(mass[:, ::-1], axis=1) > LOST_MASS).any(axis=0)
    places = np.flatnonzero(from_start & np.flip(from_end))
    if not len(places):
        return first, mass
    return first + int(places[0]), mass[:, places[0] : places[-1] + 1]
