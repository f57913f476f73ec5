"""From the mean of noised directions to a linear classifier, knowing the noise.

A report of `curvote.representation.direction` is unbiased and its variance v in each
coordinate is known, so the mean of n reports is the label moment H = E[l u'] and the
second moment M = E[u u'] plus noise of variance v/n. Of two classes least squares would
be M^-1 H'; what is done to H and M first (`curvote.shrinkage`) keeps noise from being
inverted or believed. Of more classes least squares hides those in the middle (Hastie,
Tibshirani & Buja 1994), so `curvote.server.discriminant` reads H.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.mechanisms.privunit import mean_variance
from curvote.representation.direction import (
    Directions,
    Moments,
    Whitening,
    second_moment,
)
from curvote.server.discriminant import discriminant
from curvote.shrinkage import NARROWEST, Known, Rule, Spread, shrunk, solve

Array = NDArray[np.float64]
# Of two classes (coef (d,), intercept); a line for each of K more, (K, d) and (K,).
Line = tuple[Array, Any]


@dataclass(frozen=True)
class Sum:
    """The mean (size,) of ``n`` reports."""

    mean: Array
    n: int

    @classmethod
    def of(cls, directions: Array) -> Sum:
        """Return the mean of reports (n, size); none at all is a UserError."""
        return cls.over([directions])

    @classmethod
    def over(cls, shards: Iterable[Array]) -> Sum:
        """Return the mean of reports that come in parts, (n, size) each.

        They are added row after row: how they are parted changes no bit.
        """
        total, n = None, 0
        for directions in shards:
            total = added(total, directions)
            n += len(directions)
        if total is None or not n:
            raise UserError("no report has come; nothing can be learnt.")
        return cls(total / n, n)

    def noise(self, epsilon: float) -> float:
        """Return v/n: the variance that privacy adds to each coordinate."""
        return mean_variance(len(self.mean), epsilon) / self.n


def added(total: Array | None, rows: Array) -> Array:
    """Return a running sum (size,) and rows (n, size) added to it, one by one."""
    every = rows if total is None else np.vstack([total, rows])
    return np.asarray(every.sum(axis=0))


def one_round(
    total: Sum, given: Directions, epsilon: float, rule: Rule = solve
) -> Line:
    """Return coef and intercept of the classifier of z from one round's mean.

    ``rule`` reads what is known of two classes.
    """
    return classified(read(total, given, epsilon), given.intercept, rule)


def whitening(total: Sum, given: Directions, epsilon: float) -> Whitening:
    """Return centre and whitening of z as a first round's mean has them.

    M is proportional to E[(s, z)(s, z)'] but for the lengths that u divides by, so the
    centre is s c, and the covariance s^2 C/M_00, whose inverse root is the matrix.
    """
    second, s = read(total, given, epsilon).second, given.intercept
    values, vectors = np.linalg.eigh(second.around * s**2 / second.corner)
    values = np.maximum(values, NARROWEST * float(values.mean()))
    root = (vectors / np.sqrt(values)) @ vectors.T
    return Whitening(np.asarray(root), s * second.centre)


def two_rounds(
    sums: tuple[Sum, Sum],
    made: Whitening,
    given: Directions,
    epsilon: float,
    rule: Rule = solve,
) -> Line:
    """Return (coef, intercept) of the classifier of z from two rounds' means.

    The first round's label moment is carried over to the second's coordinates, and
    both are averaged by the inverse of their noise.
    """
    first = read(sums[0], given, epsilon)
    second = read(sums[1], given.whitened, epsilon)
    s = given.whitened.intercept
    over = _carry(made, first.second.matrix, (given.intercept, s))
    carried = first.noise * float((over**2).sum()) / given.p
    part = second.noise / (carried + second.noise)
    moved = np.array([part * over @ row for row in first.label])
    both = Known(moved + (1 - part) * second.label, part * carried, second.second)
    coef, constant = classified(both, s, rule)
    slopes = (made.matrix.T @ coef.T).T
    return slopes, constant - slopes @ made.centre


def read(total: Sum, given: Directions, epsilon: float) -> Known:
    """Return what a round's mean says; M is the public one if it was not asked for."""
    moments, noise = given.moments(total.mean), total.noise(epsilon)
    second = second_of(moments, noise, given)
    return Known(moments.label, noise / given.share, second)


def second_of(moments: Moments, noise: float, given: Directions) -> Spread:
    """Return M from the mean of reports, whose numbers have that variance of noise."""
    public = public_moment(given)
    if given.share == 1:
        return Spread(float(public[0]), np.zeros(given.d), np.diag(public[1:]))
    raw = second_moment(moments.diagonal, moments.off)
    return shrunk(raw, noise * given.stretch**2, public)


def public_moment(given: Directions) -> Array:
    """Return the diagonal (p,) of M for centred z of mean square ``given.square``."""
    squares = np.full(given.p, given.square)
    squares[0] = given.intercept**2
    return np.asarray(squares / squares.sum())


def _carry(made: Whitening, second: Array, intercepts: tuple[float, float]) -> Array:
    """Return T (p, p) with u in the second round's coordinates about T u.

    (s2, W (z - centre)) = B (s1, z); both sides are divided by their lengths, in the
    mean of squares by sqrt(tr(B M B')). ``intercepts`` are s1 and s2.
    """
    d, (before, after) = len(made.centre), intercepts
    over = np.zeros((d + 1, d + 1))
    over[0, 0] = after / before
    over[1:, 0] = -made.matrix @ made.centre / before
    over[1:, 1:] = made.matrix
    return np.asarray(over / np.sqrt(np.trace(over @ second @ over.T)))


def classified(known: Known, s: float, rule: Rule) -> Line:
    """Return what is known of (s, z)'s moments as a classifier of z."""
    if len(known.label) > 1:
        return discriminant(known, s)
    w = rule(known)
    return w[1:], float(w[0] * s)
