"""Shares of the classes when values are noised: winning intervals and their masses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from curvote.mechanisms.law import Law
from curvote.utility.engines.scores.forms import ScoreLine
from curvote.validate import FloatArray


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
    return (
        _linear_shares(along, spread)
        if along.straight
        else _quadratic_shares(along, spread)
    )


def _linear_shares(along: ScoreLine, spread: ValueLaw) -> FloatArray:
    """Return the shares of classes that each win on one interval."""
    classes = along.constant.shape[-1]
    won = np.zeros(along.constant.shape)
    for place in range(1, classes):
        low, high = _winning_interval(along, place)
        won[..., place] = _interval_share(spread, low, high)
    won[..., 0] = np.maximum(spread.total - won[..., 1:].sum(axis=-1), 0.0)
    return won


def _interval_share(spread: ValueLaw, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the mass between two ends, both included."""
    upper = spread.total if (high == np.inf).all() else spread.upto(high)
    lower = 0.0 if (low == -np.inf).all() else spread.below(low)
    return np.maximum(upper - lower, 0.0)


def _winning_interval(along: ScoreLine, place: int) -> tuple[FloatArray, FloatArray]:
    """Return the ends (n, m) of the interval where a class beats all others."""
    shape = along.constant.shape[:-1]
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    for other in range(along.constant.shape[-1]):
        if other != place:
            below, above = _winning_half_line(along, place, other)
            low, high = np.maximum(low, below), np.minimum(high, above)
    return low, high


def _winning_half_line(
    along: ScoreLine, first: int, second: int
) -> tuple[FloatArray, FloatArray]:
    """Return the half-line on which one class beats another.

    An open end is written as the closed one of the next number.
    """
    lead = along.constant[..., first] - along.constant[..., second]
    slope = np.broadcast_to(
        along.linear[..., first] - along.linear[..., second], lead.shape
    )
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
    """Return the shares where scores cross at most twice."""
    at = _crossings(along)
    ends = np.full((*at.shape[:2], 1), np.inf)
    edges = np.concatenate([-ends, at, ends], axis=2)
    flat = edges.reshape(len(edges), -1)
    upto = spread.upto(flat).reshape(edges.shape)
    below = spread.below(flat).reshape(edges.shape)
    gaps = np.maximum(below[..., 1:] - upto[..., :-1], 0.0)
    won = _won_mass(along, _interval_points(edges[..., :-1], edges[..., 1:]), gaps)
    if spread.law.masses.shape[1]:
        # Equal crossings are one point.
        points = (upto - below)[..., 1:-1] * (edges[..., 1:-1] > edges[..., :-2])
        won += _won_mass(along, np.clip(at, -_FAR, _FAR), points)
    return won


def _crossings(along: ScoreLine) -> FloatArray:
    """Return the places where pairs of scores are equal, increasing; else inf."""
    first, second = np.triu_indices(along.constant.shape[-1], 1)
    c = along.constant[..., first] - along.constant[..., second]
    b = along.linear[..., first] - along.linear[..., second]
    a = along.square[first] - along.square[second]
    with np.errstate(divide="ignore", invalid="ignore"):
        half = -(b + np.copysign(np.sqrt(b * b - 4 * a * c), b)) / 2
        roots = np.concatenate([half / a, c / half], axis=-1)
    return np.sort(np.where(np.isfinite(roots), roots, np.inf), axis=-1)


def _interval_points(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return a point within each open interval, whose ends may be infinite."""
    lower = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high - 1), low)
    upper = np.where(np.isinf(high), np.where(np.isinf(low), 0.0, low + 1), high)
    wide = lower - np.abs(lower) * np.isinf(low), upper + np.abs(upper) * np.isinf(high)
    return np.asarray(np.nan_to_num((wide[0] + wide[1]) / 2))


def _won_mass(along: ScoreLine, at: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the mass of points (n, m, p) at which each class wins, (n, m, K)."""
    classes = np.arange(along.constant.shape[-1])
    won = np.zeros_like(along.constant)
    for place in range(at.shape[-1]):
        best = np.argmax(along.at(at[..., place]), axis=-1)
        won += mass[..., [place]] * (best[..., None] == classes)
    return won
