"""Volunteers' labelled public records and the reports of the others, as one classifier.

Both measure the same weights w of least squares, E|y - w'u|^2 smallest. The mean of
reports says h_r = M w, with noise of variance v in each coordinate; n_v volunteers say
y = w'u, one by one, with residual variance q. Were that all, the mean of w would be

    (M^2/v + U'U/q + R)^-1 (M h_r/v + U'y/q),

R the precision of the prior (`curvote.shrinkage.solve`). Where u is spread evenly, M =
U'U/n_v = I/p, and q = 1 at the most, it weighs label moments by inverse variance,

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

from curvote.representation.direction import Directions, second_moment
from curvote.representation.simplex import codes
from curvote.server.directions import Line, Sum, one_round, public_moment, read
from curvote.server.discriminant import discriminant
from curvote.server.volunteered import FLAT, PENALTY, penalised
from curvote.shrinkage import LEAST_INTERCEPT, Known, Spread, ridge, shrunk

Array = NDArray[np.float64]

# q is estimated along with w; no rule of fifty records is believed to be better.
LEAST_RESIDUAL, ROUNDS = 0.05, 6
# No logistic slope is steeper than this many times that of a rule near chance.
STEEPEST = 50.0


@dataclass(frozen=True)
class Public:
    """Volunteers' records (s, z) (n, p), and the codes of their classes (n, K - 1)."""

    records: Array
    codes: Array

    @classmethod
    def of(cls, given: Directions, z: Array, places: NDArray[np.int64]) -> Public:
        """Return records ``z`` (n, d) of classes ``places`` (n,)."""
        constant = np.full(len(z), given.intercept)
        return cls(np.column_stack([constant, z]), codes(places, given.n_classes))

    @property
    def units(self) -> Array:
        """Return u (n, p)."""
        lengths = np.linalg.norm(self.records, axis=1, keepdims=True)
        return np.asarray(self.records / lengths)

    @property
    def label(self) -> Array:
        """The label moment (K - 1, p)."""
        return np.asarray(self.codes.T @ self.units / len(self.units))

    @property
    def noise(self) -> float:
        """The variance of its numbers, 1/((K - 1) p n): unit vectors spread evenly."""
        return 1 / float(self.codes.shape[1] * self.records.size)


@dataclass(frozen=True)
class Evidence:
    """Normal equations of w (p,): what is known says precision w = right."""

    precision: Array
    right: Array

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(self.precision + other.precision, self.right + other.right)

    def times(self, factor: float) -> Evidence:
        """Return what ``factor`` times as much of it says."""
        return Evidence(factor * self.precision, factor * self.right)

    def solved(self) -> Array:
        """Return w (p,)."""
        return np.asarray(np.linalg.solve(self.precision, self.right))


def joined(total: Sum, given: Directions, epsilon: float, public: Public) -> Line:
    """Return coef and intercept of the classifier of z by reports and volunteers.

    ``total`` is the mean of the others' reports; with no volunteers it is `one_round`.
    Of more than two classes, label moments are joined as the formula above says.
    """
    if not len(public.records):
        return one_round(total, given, epsilon)
    alone = read(total, given, epsilon)
    known = pooled(alone, public, pooled_second(total, given, epsilon, public.units))
    if given.n_classes > 2:
        return discriminant(known, given.intercept)
    told, prior = _reported(replace(alone, second=known.second)), _prior(known)
    w = _logistic(told, prior, public, public.noise / (public.noise + alone.noise))
    return w[1:], float(w[0] * given.intercept)


def pooled(alone: Known, public: Public, second: Spread) -> Known:
    """Return the label moments of reports and volunteers by inverse variance."""
    part = alone.noise / (alone.noise + public.noise)
    label = part * public.label + (1 - part) * alone.label
    return Known(label, part * public.noise, second)


def pooled_second(
    total: Sum, given: Directions, epsilon: float, units: Array
) -> Spread:
    """Return M from the volunteers' ``units`` (n, p), and from reports that tell it.

    Both are weighted by the inverse variance of a coordinate; that of n records is
    taken for 2/(p (p + 2) n), as for a uniform direction.
    """
    n, p = units.shape
    raw, noise = units.T @ units / n, 2 / (p * (p + 2) * n)
    if given.share < 1:
        moments = given.moments(total.mean)
        own = total.noise(epsilon) * given.stretch**2
        part = own / (own + noise)
        told = second_moment(moments.diagonal, moments.off)
        raw, noise = part * raw + (1 - part) * told, part * noise
    return shrunk(raw, noise, public_moment(given))


def _reported(known: Known) -> Evidence:
    """Return what the label moment of the reports says of w.

    In terms of constant and slopes, h_0 = M_00 constant and h_1 - c h_0 = C slopes.
    """
    (label,), second = known.label, known.second
    _, own = ridge(known)
    moment = label[1:] - second.centre * label[0]
    slopes = second.around @ second.around / own
    right = second.around @ moment / own
    first = second.corner**2 / known.noise, second.corner * label[0] / known.noise
    return _uncentred(first, (slopes, right), second.centre)


def _prior(known: Known) -> Evidence:
    """Return the prior that `solve` has, of the energy that both moments show."""
    second, (more, own) = known.second, ridge(known)
    signal = float(known.label[0, 0] ** 2) - known.noise
    constant = max(signal, LEAST_INTERCEPT * known.noise)
    first = second.corner**2 / constant, 0.0
    slopes = second.around * more / own, np.zeros(len(second.centre))
    return _uncentred(first, slopes, second.centre)


def _uncentred(
    first: tuple[float, float], rest: tuple[Array, Array], centre: Array
) -> Evidence:
    """Return evidence on (constant, slopes) as one on w: constant = w_0 + c'w_1."""
    to = np.eye(len(centre) + 1)
    to[0, 1:] = centre
    precision = np.zeros_like(to)
    precision[0, 0], precision[1:, 1:] = first[0], rest[0]
    return Evidence(to.T @ precision @ to, to.T @ np.r_[first[1], rest[1]])


def _logistic(told: Evidence, prior: Evidence, public: Public, part: float) -> Array:
    """Return w (p,) of two classes, with what was ``told`` as the volunteers' prior.

    A logistic rule is steeper than that of least squares. The volunteers'
    own penalty on slopes stays; the prior of `solve` goes with the reports, by the root
    of what they weigh, ``part``. Of five powers that is near the best on
    `benchmarks.laws.tuned`, and it was the best on a table whose classes are unequal.
    """
    x, signs = public.records, public.codes[:, 0]
    squares = _squares(told + prior, public.units, signs)
    steep = _steepness(x @ squares, signs, x)
    own = PENALTY * np.diag(np.r_[FLAT, np.ones(x.shape[1] - 1)])
    known = told + prior.times(np.sqrt(part))
    precision = known.precision / steep**2 + own
    return penalised(x, signs, precision, known.right / steep)


def _squares(told: Evidence, units: Array, signs: Array) -> Array:
    """Return w (p,) by least squares, with q from the residuals of the volunteers.

    The degrees of freedom that w takes of them are left out, 3/4 of n at most.
    """
    own, n, residual = Evidence(units.T @ units, units.T @ signs), len(signs), 1.0
    for _ in range(ROUNDS):
        both = told + own.times(1 / residual)
        taken = float(np.trace(np.linalg.solve(both.precision, own.precision)))
        squares = float(((signs - units @ both.solved()) ** 2).sum())
        left = max(n - taken / residual, n / 4)
        residual = float(np.clip(squares / left, LEAST_RESIDUAL, 1))
    return (told + own.times(1 / residual)).solved()


def _steepness(scores: Array, signs: Array, records: Array) -> float:
    """Return by what the scores of least squares (n,) are likeliest logistic ones.

    Near chance it is 2/|(s, z)|. They saw these records: p more that they fit no
    better than chance stand for new ones.
    """
    n, p = records.shape
    flat = 2 / float(np.sqrt(np.mean((records**2).sum(axis=1))))
    fit = signs * scores * n / (n + p)

    def gain(steep: float) -> float:
        return float((fit * expit(-steep * fit)).sum())

    steepest = STEEPEST * flat
    if gain(flat) <= 0:
        return flat
    if gain(steepest) >= 0:
        return steepest
    return float(brentq(gain, flat, steepest, rtol=1e-6))
