"""Linear classifiers from means of noised directions, corrected for the noise.

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
from curvote.mechanisms.privunit import privunit_variance
from curvote.representation.direction import (
    DirectionMoments,
    Directions,
    Whitening,
    second_moment_matrix,
)
from curvote.server.discriminant import discriminant_classifier
from curvote.shrinkage import (
    NARROWEST,
    MomentRule,
    NoisyMoments,
    SecondMoment,
    shrink_second_moment,
    solve_weights,
)

Array = NDArray[np.float64]
# Of two classes (coef (d,), intercept); a line for each of K more, (K, d) and (K,).
Line = tuple[Array, Any]


@dataclass(frozen=True)
class ReportMean:
    """The mean (size,) of ``n`` reports."""

    mean: Array
    n: int

    @classmethod
    def from_reports(cls, directions: Array) -> ReportMean:
        """Return the mean of reports (n, size); no report is a UserError."""
        return cls.from_shards([directions])

    @classmethod
    def from_shards(cls, shards: Iterable[Array]) -> ReportMean:
        """Return the mean of reports in parts; the parts change no bit.

        They are added row after row: how they are parted changes no bit.
        """
        total, n = None, 0
        for directions in shards:
            total = add_rows(total, directions)
            n += len(directions)
        if total is None or not n:
            raise UserError("no report has come; nothing can be learnt.")
        return cls(total / n, n)

    def noise(self, epsilon: float) -> float:
        """Return the variance that privacy adds to each coordinate."""
        return privunit_variance(len(self.mean), epsilon) / self.n


def add_rows(total: Array | None, rows: Array) -> Array:
    """Return a running sum (size,) with rows (n, size) added one by one."""
    rows_and_total = rows if total is None else np.vstack([total, rows])
    return np.asarray(rows_and_total.sum(axis=0))


def one_round_classifier(
    mean: ReportMean,
    directions: Directions,
    epsilon: float,
    rule: MomentRule = solve_weights,
) -> Line:
    """Return coef and intercept of the classifier from one round's mean.

    ``rule`` reads what is known of two classes.
    """
    return classifier_from_moments(
        estimate_moments(mean, directions, epsilon), directions.intercept, rule
    )


def estimate_whitening(
    mean: ReportMean, directions: Directions, epsilon: float
) -> Whitening:
    """Return centre and whitening of z from a first round's mean.

    M is proportional to E[(s, z)(s, z)'] but for the lengths that u divides by, so the
    centre is s c, and the covariance s^2 C/M_00, whose inverse root is the matrix.
    """
    second, s = estimate_moments(mean, directions, epsilon).second, directions.intercept
    values, vectors = np.linalg.eigh(second.around * s**2 / second.corner)
    values = np.maximum(values, NARROWEST * float(values.mean()))
    root = (vectors / np.sqrt(values)) @ vectors.T
    return Whitening(np.asarray(root), s * second.centre)


def two_round_classifier(
    means: tuple[ReportMean, ReportMean],
    whitening: Whitening,
    directions: Directions,
    epsilon: float,
    rule: MomentRule = solve_weights,
) -> Line:
    """Return coef and intercept of the classifier from two rounds' means.

    The first round's label moment is carried over to the second's coordinates, and
    both are averaged by the inverse of their noise.
    """
    first = estimate_moments(means[0], directions, epsilon)
    second = estimate_moments(means[1], directions.whitened, epsilon)
    s = directions.whitened.intercept
    transport = _transport_matrix(
        whitening, first.second.matrix, (directions.intercept, s)
    )
    carried = first.noise * float((transport**2).sum()) / directions.p
    part = second.noise / (carried + second.noise)
    moved = np.array([part * transport @ row for row in first.label])
    combined = NoisyMoments(
        moved + (1 - part) * second.label, part * carried, second.second
    )
    coef, constant = classifier_from_moments(combined, s, rule)
    slopes = (whitening.matrix.T @ coef.T).T
    return slopes, constant - slopes @ whitening.centre


def estimate_moments(
    mean: ReportMean, directions: Directions, epsilon: float
) -> NoisyMoments:
    """Return the noised moments that a round's mean estimates."""
    moments, noise = directions.moments(mean.mean), mean.noise(epsilon)
    second = estimate_second_moment(moments, noise, directions)
    return NoisyMoments(moments.label, noise / directions.share, second)


def estimate_second_moment(
    moments: DirectionMoments, noise: float, directions: Directions
) -> SecondMoment:
    """Return the shrunk second moment from the moments of reports."""
    public = public_moment(directions)
    if directions.share == 1:
        return SecondMoment(
            float(public[0]), np.zeros(directions.d), np.diag(public[1:])
        )
    raw = second_moment_matrix(moments.diagonal, moments.off)
    return shrink_second_moment(raw, noise * directions.second_scale**2, public)


def public_moment(directions: Directions) -> Array:
    """Return the assumed diagonal (p,) of M for centred z."""
    squares = np.full(directions.p, directions.square)
    squares[0] = directions.intercept**2
    return np.asarray(squares / squares.sum())


def _transport_matrix(
    whitening: Whitening, second: Array, intercepts: tuple[float, float]
) -> Array:
    """Return T (p, p) that maps u to the second round's coordinates.

    (s2, W (z - centre)) = B (s1, z); both sides are divided by their lengths, in the
    mean of squares by sqrt(tr(B M B')). ``intercepts`` are s1 and s2.
    """
    d, (before, after) = len(whitening.centre), intercepts
    transport = np.zeros((d + 1, d + 1))
    transport[0, 0] = after / before
    transport[1:, 0] = -whitening.matrix @ whitening.centre / before
    transport[1:, 1:] = whitening.matrix
    return np.asarray(transport / np.sqrt(np.trace(transport @ second @ transport.T)))


def classifier_from_moments(moments: NoisyMoments, s: float, rule: MomentRule) -> Line:
    """Return the classifier of z from the moments of (s, z)."""
    if len(moments.label) > 1:
        return discriminant_classifier(moments, s)
    w = rule(moments)
    return w[1:], float(w[0] * s)
