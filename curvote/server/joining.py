"""Joint classifier of volunteers' public records and the others' reports.

Both measure the same weights w of least squares, E|y - w'u|^2 smallest. The mean of
reports says h_r = M w, with noise of variance v in each coordinate; n_v volunteers say
y = w'u, one by one, with residual variance q. Were that all, the mean of w would be

    (M^2/v + U'U/q + R)^-1 (M h_r/v + U'y/q),

R the precision of the prior (`curvote.shrinkage.solve_weights`). Where u is spread
evenly, M = U'U/n_v = I/p, and q = 1 at the most, it weighs label moments by inverse
variance,

    h = (h_r/v + h_v p n_v)/(1/v + p n_v),   p = d + 1,

so n_v labelled records are worth reports of N epsilon^2 = 6 p n_v (v N epsilon^2 is
about 6), or more where the rule is so good that q is small.

What the volunteers say is then read as their own regression has it, logistic and in z
(`curvote.server.volunteered`): least squares would be misled by records that are skewed
or far from the public centre. What the reports say becomes its prior. So without
volunteers, or where they weigh nothing, the join is what the reports alone say, and as
v grows it becomes what the volunteers alone say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from curvote.representation.direction import Directions, second_moment_matrix
from curvote.representation.simplex import class_codes
from curvote.server.directions import (
    Line,
    ReportMean,
    estimate_moments,
    one_round_classifier,
    public_moment,
)
from curvote.server.discriminant import discriminant_classifier
from curvote.server.volunteered import FLAT_PRECISION, PENALTY, penalised_logistic
from curvote.shrinkage import (
    LEAST_INTERCEPT,
    NoisyMoments,
    SecondMoment,
    ridge_penalty,
    shrink_second_moment,
)

Array = NDArray[np.float64]

# q is estimated along with w; no rule of fifty records is believed to be better.
LEAST_RESIDUAL, ROUNDS = 0.05, 6
# No logistic slope is steeper than this many times that of a rule near chance.
STEEPEST = 50.0


@dataclass(frozen=True)
class VolunteerRecords:
    """Volunteers' records (s, z) (n, p), and their class codes."""

    records: Array
    codes: Array

    @classmethod
    def from_records(
        cls, directions: Directions, z: Array, places: NDArray[np.int64]
    ) -> VolunteerRecords:
        """Return the records ``z`` (n, d) of classes ``places`` (n,)."""
        constant = np.full(len(z), directions.intercept)
        return cls(
            np.column_stack([constant, z]), class_codes(places, directions.n_classes)
        )

    @property
    def units(self) -> Array:
        """The unit vectors u (n, p) of the records."""
        lengths = np.linalg.norm(self.records, axis=1, keepdims=True)
        return np.asarray(self.records / lengths)

    @property
    def label(self) -> Array:
        """The label moment (K - 1, p)."""
        return np.asarray(self.codes.T @ self.units / len(self.units))

    @property
    def noise(self) -> float:
        """The variance of the label moment's numbers."""
        return 1 / float(self.codes.shape[1] * self.records.size)


@dataclass(frozen=True)
class Evidence:
    """Normal equations of w (p,): precision w = right."""

    precision: Array
    right: Array

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(self.precision + other.precision, self.right + other.right)

    def times(self, factor: float) -> Evidence:
        """Return the evidence scaled by ``factor``."""
        return Evidence(factor * self.precision, factor * self.right)

    def solve(self) -> Array:
        """Return the solution w (p,)."""
        return np.asarray(np.linalg.solve(self.precision, self.right))


def joint_classifier(
    mean: ReportMean, directions: Directions, epsilon: float, public: VolunteerRecords
) -> Line:
    """Return coef and intercept of the classifier by reports and volunteers.

    ``mean`` is the mean of the others' reports; with no volunteers it is
    `one_round_classifier`. Of more than two classes, label moments are joined as the
    formula above says.
    """
    if not len(public.records):
        return one_round_classifier(mean, directions, epsilon)
    reported = estimate_moments(mean, directions, epsilon)
    moments = pool_label_moments(
        reported, public, pool_second_moments(mean, directions, epsilon, public.units)
    )
    if directions.n_classes > 2:
        return discriminant_classifier(moments, directions.intercept)
    evidence, prior = (
        _report_evidence(replace(reported, second=moments.second)),
        _prior_evidence(moments),
    )
    w = _joint_logistic(
        evidence, prior, public, public.noise / (public.noise + reported.noise)
    )
    return w[1:], float(w[0] * directions.intercept)


def pool_label_moments(
    reported: NoisyMoments, public: VolunteerRecords, second: SecondMoment
) -> NoisyMoments:
    """Return the label moments of both sources by inverse variance."""
    part = reported.noise / (reported.noise + public.noise)
    label = part * public.label + (1 - part) * reported.label
    return NoisyMoments(label, part * public.noise, second)


def pool_second_moments(
    mean: ReportMean, directions: Directions, epsilon: float, units: Array
) -> SecondMoment:
    """Return M from volunteers and reports by inverse variance.

    Both are weighted by the inverse variance of a coordinate; that of n records is
    taken for 2/(p (p + 2) n), as for a uniform direction.
    """
    n, p = units.shape
    raw, noise = units.T @ units / n, 2 / (p * (p + 2) * n)
    if directions.share < 1:
        moments = directions.moments(mean.mean)
        report_noise = mean.noise(epsilon) * directions.second_scale**2
        part = report_noise / (report_noise + noise)
        reported = second_moment_matrix(moments.diagonal, moments.off)
        raw, noise = part * raw + (1 - part) * reported, part * noise
    return shrink_second_moment(raw, noise, public_moment(directions))


def _report_evidence(moments: NoisyMoments) -> Evidence:
    """Return the evidence of the reports' label moment on w.

    In terms of constant and slopes, h_0 = M_00 constant and h_1 - c h_0 = C slopes.
    """
    (label,), second = moments.label, moments.second
    _, variance = ridge_penalty(moments)
    moment = label[1:] - second.centre * label[0]
    slopes = second.around @ second.around / variance
    right = second.around @ moment / variance
    first = second.corner**2 / moments.noise, second.corner * label[0] / moments.noise
    return _uncentre_evidence(first, (slopes, right), second.centre)


def _prior_evidence(moments: NoisyMoments) -> Evidence:
    """Return the prior of `solve_weights` as evidence on w."""
    second, (penalty, variance) = moments.second, ridge_penalty(moments)
    signal = float(moments.label[0, 0] ** 2) - moments.noise
    constant = max(signal, LEAST_INTERCEPT * moments.noise)
    first = second.corner**2 / constant, 0.0
    slopes = second.around * penalty / variance, np.zeros(len(second.centre))
    return _uncentre_evidence(first, slopes, second.centre)


def _uncentre_evidence(
    first: tuple[float, float], rest: tuple[Array, Array], centre: Array
) -> Evidence:
    """Return evidence on (constant, slopes) as evidence on w."""
    to = np.eye(len(centre) + 1)
    to[0, 1:] = centre
    precision = np.zeros_like(to)
    precision[0, 0], precision[1:, 1:] = first[0], rest[0]
    return Evidence(to.T @ precision @ to, to.T @ np.r_[first[1], rest[1]])


def _joint_logistic(
    evidence: Evidence, prior: Evidence, public: VolunteerRecords, part: float
) -> Array:
    """Return w (p,) of two classes, the reports being the prior.

    A logistic rule is steeper than that of least squares. The volunteers'
    own penalty on slopes stays; the prior of `solve` goes with the reports, by the root
    of what they weigh, ``part``. Of five powers that is near the best on
    `benchmarks.laws.tuned`, and it was the best on a table whose classes are unequal.
    """
    x, signs = public.records, public.codes[:, 0]
    squares = _least_squares(evidence + prior, public.units, signs)
    steepness = _logistic_scale(x @ squares, signs, x)
    penalty = PENALTY * np.diag(np.r_[FLAT_PRECISION, np.ones(x.shape[1] - 1)])
    combined = evidence + prior.times(np.sqrt(part))
    precision = combined.precision / steepness**2 + penalty
    return penalised_logistic(x, signs, precision, combined.right / steepness)


def _least_squares(evidence: Evidence, units: Array, signs: Array) -> Array:
    """Return w (p,) by least squares, the residual variance estimated.

    The degrees of freedom that w takes of them are left out, 3/4 of n at most.
    """
    volunteers, n, residual = (
        Evidence(units.T @ units, units.T @ signs),
        len(signs),
        1.0,
    )
    for _ in range(ROUNDS):
        combined = evidence + volunteers.times(1 / residual)
        degrees = float(
            np.trace(np.linalg.solve(combined.precision, volunteers.precision))
        )
        squares = float(((signs - units @ combined.solve()) ** 2).sum())
        free_degrees = max(n - degrees / residual, n / 4)
        residual = float(np.clip(squares / free_degrees, LEAST_RESIDUAL, 1))
    return (evidence + volunteers.times(1 / residual)).solve()


def _logistic_scale(scores: Array, signs: Array, records: Array) -> float:
    """Return the likeliest scale of logistic scores.

    Near chance it is 2/|(s, z)|. They saw these records: p more that they fit no
    better than chance stand for new ones.
    """
    n, p = records.shape
    chance_scale = 2 / float(np.sqrt(np.mean((records**2).sum(axis=1))))
    fit = signs * scores * n / (n + p)

    def gain(steep: float) -> float:
        return float((fit * expit(-steep * fit)).sum())

    steepest = STEEPEST * chance_scale
    if gain(chance_scale) <= 0:
        return chance_scale
    if gain(steepest) >= 0:
        return steepest
    return float(brentq(gain, chance_scale, steepest, rtol=1e-6))
