"""Volunteers' labelled public records and the reports of the others, as one classifier.

Both measure the same weights w of least squares, E|y - w'u|^2 smallest. The mean of
reports says h_r = M w, with noise of variance v in each coordinate; n_v volunteers say
y = w'u, one by one, with residual variance q. Their posterior mean is

    w = (M^2/v + U'U/q + R)^-1 (M h_r/v + U'y/q),

R the prior's precision. Where u is spread evenly, M = U'U/n_v = I/p, and q = 1 at the
most, it weighs the label moments by the inverse of their variances,

    h = (h_r/v + h_v p n_v)/(1/v + p n_v),   p = d + 1,

so n_v labelled records are worth reports of N epsilon^2 = 6 p n_v (`v N epsilon^2` is
about 6), or more where the rule is so good that q is small. Without volunteers it is
what the reports alone say (`curvote.server.directions`); as v grows it becomes ridge
regression on the volunteers' records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from curvote.representation.direction import Directions, second_moment
from curvote.representation.simplex import codes
from curvote.server.directions import Line, Sum, one_round, public_moment, read
from curvote.server.discriminant import discriminant
from curvote.server.gate import gated, guarded
from curvote.shrinkage import LEAST_INTERCEPT, Known, Spread, ridge, shrunk, solve

Array = NDArray[np.float64]

# q is estimated along with w; no rule of fifty records is believed to be better.
LEAST_RESIDUAL, ROUNDS = 0.05, 6


@dataclass(frozen=True)
class Evidence:
    """Normal equations of (constant, slopes) (p,) around a centre: A w = b."""

    precision: Array
    right: Array

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(self.precision + other.precision, self.right + other.right)

    def times(self, factor: float) -> Evidence:
        """Return what ``factor`` times as much of it says."""
        return Evidence(factor * self.precision, factor * self.right)

    def solved(self) -> Array:
        """Return w (p,)."""
        return np.linalg.solve(self.precision, self.right)


@dataclass(frozen=True)
class Public:
    """Volunteers' records: u (n, p), and the codes of their classes (n, K - 1)."""

    units: Array
    codes: Array

    @classmethod
    def of(cls, given: Directions, z: Array, places: NDArray[np.int64]) -> Public:
        """Return records ``z`` (n, d) of classes ``places`` (n,) as unit vectors."""
        return cls(given.units(z), codes(places, given.n_classes))

    @property
    def label(self) -> Array:
        """The label moment (K - 1, p)."""
        return self.codes.T @ self.units / len(self.units)

    @property
    def noise(self) -> float:
        """The variance of its numbers, 1/((K - 1) p n): unit vectors spread evenly."""
        return 1 / (self.codes.shape[1] * self.units.size)


def joined(
    total: Sum, given: Directions, epsilon: float, public: Public, *, gate: bool = False
) -> Line:
    """Return coef and intercept of the classifier of z by reports and volunteers.

    ``total`` is the mean of the others' reports; with no volunteers it is `one_round`.
    Of more than two classes, label moments are joined as the formula above says. With
    the ``gate`` two classes get the majority where the rule gains nothing.
    """
    if not len(public.units):
        return one_round(total, given, epsilon, gated if gate else solve)
    alone = read(total, given, epsilon)
    known = pooled(alone, public, pooled_second(total, given, epsilon, public.units))
    if given.n_classes > 2:
        return discriminant(known, given.intercept)
    w = _regression(alone, public, known)
    if gate:
        w = guarded(known, w)
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


def _regression(alone: Known, public: Public, known: Known) -> Array:
    """Return w (p,) of two classes: see the module; ``known`` is what both say."""
    centre = known.second.centre
    told = _reported(replace(alone, second=known.second))
    told += _prior(known, alone.second)
    w = _posterior(told, _centred(public.units, centre), public.codes[:, 0])
    return np.concatenate([[w[0] - centre @ w[1:]], w[1:]])


def _reported(known: Known) -> Evidence:
    """Return what the label moment of the reports says of constant and slopes.

    h_0 = M_00 constant and h_1 - c h_0 = C slopes: see `curvote.shrinkage.solve`.
    """
    (label,), second = known.label, known.second
    _, own = ridge(known)
    moment = label[1:] - second.centre * label[0]
    precision = _blocks(
        second.corner**2 / known.noise, second.around @ second.around / own
    )
    right = second.around @ moment / own
    return Evidence(precision, np.r_[second.corner * label[0] / known.noise, right])


def _prior(known: Known, narrow: Spread) -> Evidence:
    """Return the prior that `solve` has, of the energy that both moments show.

    Its directions are those of ``narrow``, M as the reports alone have it.
    """
    more, own = ridge(
        replace(known, second=replace(known.second, around=narrow.around))
    )
    first = float(known.label[0, 0] ** 2) - known.noise
    constant = max(first, LEAST_INTERCEPT * known.noise)
    precision = _blocks(known.second.corner**2 / constant, narrow.around * more / own)
    return Evidence(precision, np.zeros(len(precision)))


def _blocks(first: float, rest: Array) -> Array:
    matrix = np.zeros((len(rest) + 1, len(rest) + 1))
    matrix[0, 0], matrix[1:, 1:] = first, rest
    return matrix


def _centred(units: Array, centre: Array) -> Array:
    """Return what constant and slopes multiply: (u_0, u_1 - c u_0), (n, p)."""
    return np.column_stack([units[:, 0], units[:, 1:] - units[:, :1] * centre])


def _posterior(told: Evidence, x: Array, signs: Array) -> Array:
    """Return w (p,), with q from the residuals of the volunteers ``x`` (n, p).

    The degrees of freedom that w takes of them are left out, 3/4 of n at most.
    """
    own, n, residual = Evidence(x.T @ x, x.T @ signs), len(x), 1.0
    for _ in range(ROUNDS):
        both = told + own.times(1 / residual)
        taken = float(np.trace(np.linalg.solve(both.precision, own.precision)))
        squares = float(((signs - x @ both.solved()) ** 2).sum())
        left = max(n - taken / residual, n / 4)
        residual = float(np.clip(squares / left, LEAST_RESIDUAL, 1))
    return (told + own.times(1 / residual)).solved()
