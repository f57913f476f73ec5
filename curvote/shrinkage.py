"""Linear classifiers from noised directions: shrinkage, discriminants, gradients.

- A second moment M is read as a centre and a spread around it, M = (M_00, M_00 c';
  M_00 c, C + M_00 c c'), and each part is shrunk towards what is public: M_00 to its
  value for centred z, c to 0, the diagonal of C to its mean, its other entries to 0,
  each by the positive part of 1 - noise energy / observed energy (James & Stein 1961).
  Eigenvalues of C stay above those of noise alone.
- The slopes: ridge regression with the ridge of an empirical Bayes prior. The
  intercept is shrunk by itself, since it is known whenever classes are unequal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# The noise of a symmetric matrix has eigenvalues up to sqrt(2 d v) (Wigner 1958).
EDGE = 0.75
# A wrong centre spoils the slopes, so it is believed where it stands out clearly.
DOUBT_CENTRE, DOUBT_CORNER = 2.5, 4.0
# A signal is taken to be at least this part of the noise that hides it.
LEAST_SLOPES, LEAST_INTERCEPT = 0.1, 1.0
# No direction is taken to be narrower than this part of the mean.
NARROWEST = 0.05


@dataclass(frozen=True)
class SecondMoment:
    """Second moment M by its parts: corner M_00, centre c, scatter C."""

    corner: float
    centre: Array
    around: Array

    @property
    def matrix(self) -> Array:
        """The second moment matrix M (p, p)."""
        first = np.concatenate([[1.0], self.centre])
        matrix = self.corner * np.outer(first, first)
        matrix[1:, 1:] += self.around
        return np.asarray(matrix)


@dataclass(frozen=True)
class NoisyMoments:
    """Noised label moment (K - 1, p), its variance, and the second moment."""

    label: Array
    noise: float
    second: SecondMoment


# From what is known to w (p,), a classifier of u.
MomentRule = Callable[[NoisyMoments], Array]


def shrink_second_moment(raw: Array, noise: float, public: Array) -> SecondMoment:
    """Return the shrunk parts of a noised second moment (p, p).

    ``noise`` is the variance of a coordinate, half of which an entry beside the
    diagonal has. M_00 stays within a factor 2 of its ``public`` value, and C's mean
    eigenvalue above a fifth of it.
    """
    d = len(public) - 1
    excess = raw[0, 0] - public[0]
    corner = (
        public[0] + shrink_factor(np.array([excess]), DOUBT_CORNER * noise) * excess
    )
    corner = float(np.clip(corner, public[0] / 2, 2 * public[0]))
    column = shrink_factor(raw[1:, 0], DOUBT_CENTRE * d * noise / 2) * raw[1:, 0]
    centre = column / corner
    around = raw[1:, 1:] - corner * np.outer(centre, centre)
    least = float(public[1:].mean()) / 5
    return SecondMoment(corner, centre, _shrink_scatter(around, noise, least))


def _shrink_scatter(raw: Array, noise: float, least: float) -> Array:
    """Return the shrunk scatter C (d, d) around the centre."""
    d = len(raw)
    mean = max(float(np.trace(raw)) / d, least)
    deviation, off_diagonal = np.diag(raw) - mean, raw - np.diag(np.diag(raw))
    diagonal = mean + shrink_factor(deviation, (d - 1) * noise) * deviation
    mixed = (
        np.diag(diagonal)
        + shrink_factor(off_diagonal, d * (d - 1) * noise / 2) * off_diagonal
    )
    values, vectors = np.linalg.eigh(mixed)
    floor = min(max(EDGE * np.sqrt(2 * d * noise), NARROWEST * mean), mean)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def shrink_factor(observed: Array, noise_energy: float) -> float:
    """Return max(0, 1 - noise energy / observed energy) (James & Stein 1961)."""
    energy = float((observed**2).sum())
    return 1 - noise_energy / energy if energy > noise_energy else 0.0


def solve_weights(moments: NoisyMoments) -> Array:
    """Return the weights w (p,) of two classes by empirical Bayes ridge.

    Slopes regress h_1 - c h_0 on C. A prior N(0, t C^-1) of theirs, with t from the
    energy that exceeds the noise, makes (C + ridge)^-1 (h_1 - c h_0) their posterior
    mean, ridge = noise tr(C) / excess. The intercept is h_0/M_00, shrunk, less
    c'slopes.
    """
    (label,), noise, second = moments.label, moments.noise, moments.second
    centre, d = second.centre, len(second.centre)
    penalty, _ = ridge_penalty(moments)
    moment = label[1:] - centre * label[0]
    slopes = np.linalg.solve(second.around + penalty * np.eye(d), moment)
    signal = _signal_energy(label[:1], noise, LEAST_INTERCEPT)
    constant = label[0] / second.corner * signal / (signal + noise)
    return np.concatenate([[constant - centre @ slopes], slopes])


def ridge_penalty(moments: NoisyMoments) -> tuple[float, float]:
    """Return the ridge of `solve`, and the noise variance of h_1 - c h_0."""
    second, d = moments.second, len(moments.second.centre)
    moment = moments.label[0, 1:] - second.centre * moments.label[0, 0]
    variance = moments.noise * (1 + float(second.centre @ second.centre) / d)
    signal = _signal_energy(moment, variance, LEAST_SLOPES)
    return variance * float(np.trace(second.around)) / signal, variance


def _signal_energy(observed: Array, noise: float, least: float) -> float:
    """Return the energy above the noise's, at least a share of the latter."""
    hidden = len(observed) * noise
    return max(float((observed**2).sum()) - hidden, least * hidden)
