"""From the mean of noised directions to a linear classifier, knowing the noise.

A report of `curvote.representation.direction` is unbiased and its variance v in each
coordinate is known, so the mean of n reports is the label moment h = E[y u] and the
second moment M = E[u u'] plus noise of variance v/n. Least squares would be M^-1 h;
what is done to h and M first keeps noise from being inverted or believed:

- M is read as a centre and a spread around it, M = (M_00, M_00 c'; M_00 c, C + M_00
  c c'), and each part is shrunk towards what is public: M_00 to its value for centred
  z, c to 0, the diagonal of C to its mean, its other entries to 0, each by the positive
  part of 1 - noise energy / observed energy (James & Stein 1961). Eigenvalues of C stay
  above those of noise alone.
- The slopes: ridge regression with the ridge of an empirical Bayes prior. The
  intercept is shrunk by itself, since it is known whenever classes are unequal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.mechanisms.privunit import mean_variance
from curvote.representation.direction import Directions, Whitening, second_moment

Array = NDArray[np.float64]
Line = tuple[Array, float]

# The noise of a symmetric matrix has eigenvalues up to sqrt(2 d v) (Wigner 1958).
EDGE = 0.75
# A wrong centre spoils the slopes, so it is believed where it stands out clearly.
DOUBT_CENTRE, DOUBT_CORNER = 2.5, 4.0
# A signal is taken to be at least this part of the noise that hides it.
LEAST_SLOPES, LEAST_INTERCEPT = 0.1, 1.0
# No direction is taken to be narrower than this part of the mean.
NARROWEST = 0.05


@dataclass(frozen=True)
class Sum:
    """The mean (size,) of ``n`` reports."""

    mean: Array
    n: int

    @classmethod
    def of(cls, directions: Array) -> Sum:
        """Return the mean of reports (n, size); none at all is a UserError."""
        if not len(directions):
            raise UserError("no report has come; nothing can be learnt.")
        return cls(directions.mean(axis=0), len(directions))

    def noise(self, epsilon: float) -> float:
        """Return v/n: the variance that privacy adds to each coordinate."""
        return mean_variance(len(self.mean), epsilon) / self.n


@dataclass(frozen=True)
class Spread:
    """M by its parts: ``corner`` M_00, ``centre`` c (d,), ``around`` C (d, d)."""

    corner: float
    centre: Array
    around: Array

    @property
    def matrix(self) -> Array:
        """M (p, p)."""
        first = np.concatenate([[1.0], self.centre])
        matrix = self.corner * np.outer(first, first)
        matrix[1:, 1:] += self.around
        return np.asarray(matrix)


@dataclass(frozen=True)
class Known:
    """Label moment (p,), the variance of its numbers, and the second moment."""

    label: Array
    noise: float
    second: Spread


def one_round(total: Sum, given: Directions, epsilon: float) -> Line:
    """Return (coef (d,), intercept) of the classifier of z from one round's mean."""
    return _line(solve(read(total, given, epsilon)), given.intercept)


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
    sums: tuple[Sum, Sum], made: Whitening, given: Directions, epsilon: float
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
    label = part * over @ first.label + (1 - part) * second.label
    both = Known(label, part * carried, second.second)
    coef, constant = _line(solve(both), s)
    slopes = made.matrix.T @ coef
    return slopes, constant - float(slopes @ made.centre)


def read(total: Sum, given: Directions, epsilon: float) -> Known:
    """Return what a round's mean says; M is the public one if it was not asked for."""
    moments, noise = given.moments(total.mean), total.noise(epsilon)
    public = public_moment(given)
    second = Spread(float(public[0]), np.zeros(given.d), np.diag(public[1:]))
    if given.share < 1:
        raw = second_moment(moments.diagonal, moments.off)
        second = shrunk(raw, noise * given.stretch**2, public)
    return Known(moments.label, noise / given.share, second)


def public_moment(given: Directions) -> Array:
    """Return the diagonal (p,) of M for centred z of mean square ``given.square``."""
    squares = np.full(given.p, given.square)
    squares[0] = given.intercept**2
    return np.asarray(squares / squares.sum())


def shrunk(raw: Array, noise: float, public: Array) -> Spread:
    """Return M by its parts from its noised form (p, p), as the module says.

    ``noise`` is the variance of a coordinate, half of which an entry beside the
    diagonal has. M_00 stays within a factor 2 of its ``public`` value, and C's mean
    eigenvalue above a fifth of it.
    """
    d = len(public) - 1
    excess = raw[0, 0] - public[0]
    corner = public[0] + kept(np.array([excess]), DOUBT_CORNER * noise) * excess
    corner = float(np.clip(corner, public[0] / 2, 2 * public[0]))
    column = kept(raw[1:, 0], DOUBT_CENTRE * d * noise / 2) * raw[1:, 0]
    centre = column / corner
    around = raw[1:, 1:] - corner * np.outer(centre, centre)
    least = float(public[1:].mean()) / 5
    return Spread(corner, centre, _around(around, noise, least))


def _around(raw: Array, noise: float, least: float) -> Array:
    """Return C (d, d): a multiple of 1, and what stands out of the noise around it."""
    d = len(raw)
    mean = max(float(np.trace(raw)) / d, least)
    uneven, off = np.diag(raw) - mean, raw - np.diag(np.diag(raw))
    diagonal = mean + kept(uneven, (d - 1) * noise) * uneven
    mixed = np.diag(diagonal) + kept(off, d * (d - 1) * noise / 2) * off
    values, vectors = np.linalg.eigh(mixed)
    floor = min(max(EDGE * np.sqrt(2 * d * noise), NARROWEST * mean), mean)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def kept(observed: Array, noise_energy: float) -> float:
    """Return max(0, 1 - noise energy / observed energy) (James & Stein 1961)."""
    energy = float((observed**2).sum())
    return 1 - noise_energy / energy if energy > noise_energy else 0.0


def solve(known: Known) -> Array:
    """Return w (p,): ridge regression for the slopes, the intercept beside it.

    Slopes regress h_1 - c h_0 on C. A prior N(0, t C^-1) of theirs, with t from the
    energy that exceeds the noise, makes (C + ridge)^-1 (h_1 - c h_0) their posterior
    mean, ridge = noise tr(C) / excess. The intercept is h_0/M_00, shrunk, less
    c'slopes.
    """
    label, noise, second = known.label, known.noise, known.second
    centre, d = second.centre, len(second.centre)
    moment = label[1:] - centre * label[0]
    own = noise * (1 + float(centre @ centre) / d)
    ridge = own * float(np.trace(second.around)) / _excess(moment, own, LEAST_SLOPES)
    slopes = np.linalg.solve(second.around + ridge * np.eye(d), moment)
    signal = _excess(label[:1], noise, LEAST_INTERCEPT)
    constant = label[0] / second.corner * signal / (signal + noise)
    return np.concatenate([[constant - centre @ slopes], slopes])


def _excess(observed: Array, noise: float, least: float) -> float:
    """Return the energy above that of the noise, or a part of the latter."""
    hidden = len(observed) * noise
    return max(float((observed**2).sum()) - hidden, least * hidden)


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


def _line(w: Array, s: float) -> Line:
    return w[1:], float(w[0] * s)
