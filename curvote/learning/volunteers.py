"""Classifiers from volunteers' public records, alone or joined with reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.curves.direction import Directions, class_codes, second_moment_matrix
from curvote.learning.directions import (
    LEAST_INTERCEPT,
    Line,
    NoisyMoments,
    ReportMean,
    SecondMoment,
    discriminant_classifier,
    estimate_moments,
    one_round_classifier,
    public_moment,
    ridge_penalty,
    shrink_second_moment,
)

Array = NDArray[np.float64]
LOWEST_SCORE = float(np.finfo(np.float64).min)


def class_scores(
    model: Any, z: Array, places: NDArray[np.int64], n_classes: int
) -> tuple[Array, Array]:
    """Return the scores coef (K, d) and intercept (K,) of a linear ``model``.

    It is fitted to records ``z`` (n, d) with labels (n,) that are places of K classes.
    A class that none of them has never wins.
    """
    present = np.unique(places)
    coef = np.zeros((n_classes, z.shape[1]))
    intercept = np.full(n_classes, LOWEST_SCORE)
    if len(present) == 1:
        intercept[present] = 0.0
        return coef, intercept
    model.fit(z, places)
    # Of two classes scikit-learn has one score: that of the second.
    signs = np.array([[-1.0], [1.0]]) if len(present) == 2 else np.ones((1, 1))
    coef[present] = signs * model.coef_
    intercept[present] = np.ravel(signs * model.intercept_)
    return coef, intercept


# The penalty is |coef|^2/2 beside the sum of losses: a slope of z, whose scale is
# public, is expected to be a standard normal number. Fixed, so that nothing is tuned.
PENALTY = 1.0
# The precision of an intercept that nothing is known of: it keeps the rule finite.
FLAT_PRECISION = 1e-6
MAX_STEPS, SMALL_STEP = 50, 1e-8


def ridge_logistic(z: Array, places: NDArray[np.int64], n_classes: int = 2) -> Line:
    """Return (coef, intercept) of ridge logistic regression.

    Of two classes coef is (d,), of more a score for each: (K, d) and (K,). Where all
    have one label it is the constant classifier that names it.
    """
    from sklearn.linear_model import LogisticRegression  # takes a second

    model = LogisticRegression(C=1 / PENALTY, max_iter=1000)
    if n_classes > 2:
        return class_scores(model, z, places, n_classes)
    if len(np.unique(places)) < 2:
        return np.zeros(z.shape[1]), float(2 * places[0] - 1)
    model.fit(z, places)
    return model.coef_[0], float(model.intercept_[0])


def penalised_logistic(x: Array, signs: Array, precision: Array, right: Array) -> Array:
    """Return w (p,) of least logistic loss with a normal prior.

    The prior's ``precision`` (p, p) is positive definite, its mean precision^-1
    ``right``; by Newton's method, a step that does not help being halved.
    """
    from scipy.special import expit

    def loss(w: NDArray[Any]) -> float:
        prior_term = float(w @ precision @ w) / 2 - float(right @ w)
        return float(np.logaddexp(0, -signs * (x @ w)).sum()) + prior_term

    w = np.linalg.solve(precision, right)
    for _ in range(MAX_STEPS):
        error_rates = expit(-signs * (x @ w))
        descent = x.T @ (signs * error_rates) + right - precision @ w
        curvature = (x.T * (error_rates * (1 - error_rates))) @ x + precision
        step = np.asarray(np.linalg.solve(curvature, descent))
        while loss(w + step) > loss(w) and np.abs(step).max() > SMALL_STEP:
            step = step / 2
        w = w + step
        if np.abs(step).max() <= SMALL_STEP * (1 + np.abs(w).max()):
            break
    return np.asarray(w)


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
        codes = class_codes(places, directions.n_classes)
        return cls(np.column_stack([constant, z]), codes)

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
    second = pool_second_moments(mean, directions, epsilon, public.units)
    moments = pool_label_moments(reported, public, second)
    if directions.n_classes > 2:
        return discriminant_classifier(moments, directions.intercept)
    penalty, variance = ridge_penalty(moments)
    signal = float(moments.label[0, 0] ** 2) - moments.noise
    constant = max(signal, LEAST_INTERCEPT * moments.noise)
    first = second.corner**2 / constant, 0.0
    slopes = second.around * penalty / variance, np.zeros(len(second.centre))
    evidence = _report_evidence(replace(reported, second=second))
    prior = _uncentre_evidence(first, slopes, second.centre)
    part = public.noise / (public.noise + reported.noise)
    w = _joint_logistic(evidence, prior, public, part)
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
    moment, variance = moments.slopes
    slopes = second.around @ second.around / variance
    right = second.around @ moment / variance
    first = second.corner**2 / moments.noise, second.corner * label[0] / moments.noise
    return _uncentre_evidence(first, (slopes, right), second.centre)


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
    volunteers = Evidence(units.T @ units, units.T @ signs)
    n = len(signs)
    residual = 1.0
    for _ in range(ROUNDS):
        combined = evidence + volunteers.times(1 / residual)
        share = np.linalg.solve(combined.precision, volunteers.precision)
        degrees = float(np.trace(share))
        squares = float(((signs - units @ combined.solve()) ** 2).sum())
        free_degrees = max(n - degrees / residual, n / 4)
        residual = float(np.clip(squares / free_degrees, LEAST_RESIDUAL, 1))
    return (evidence + volunteers.times(1 / residual)).solve()


def _logistic_scale(scores: Array, signs: Array, records: Array) -> float:
    """Return the likeliest scale of logistic scores.

    Near chance it is 2/|(s, z)|. They saw these records: p more that they fit no
    better than chance stand for new ones.
    """
    from scipy.optimize import brentq
    from scipy.special import expit

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
