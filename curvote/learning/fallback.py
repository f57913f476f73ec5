"""Majority fallback: a decoded rule, or the constant classifier if that errs less.

Where classes are very unequal and little is known, a decoded rule errs more often than
the constant classifier. Which of them errs less is a matter of what was released
anyway, the label moment h and the second moment M, so that asking costs no budget.

The model: with r = sqrt(M_00) for u_0, x = u_1/r is normal with centre c and covariance
S = C/M_00, and y is the sign of a linear score of x plus normal noise (probit). Of b =
E[y] and g = Cov(y, x) the server knows, by `curvote.learning.directions`,

    b ~ N(h_0/r, v/r^2),  r g ~ N(C (C + ridge)^-1 m, own C (C + ridge)^-1),

with m = h_1 - c h_0. A rule w'(x - c) + a, w'S w = 1, agrees with y as two normal
numbers of correlation w'g/(2 phi(k)) do, cut at a and k, where Phi(k) = (1 + b)/2 (Owen
1956).

The errors it predicts are far too rosy where records are skewed or shifted. They serve
to compare, and are never shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, owens_t

from curvote.learning.directions import NoisyMoments, solve_weights

Array = NDArray[np.float64]

# The larger class must stand out by so many standard deviations of h_0: where slopes
# stand out too, by SEEN of the deviations of noise's energy, a rule has much to lose.
CLEAR_MAJORITY, CLEAREST_MAJORITY, VISIBLE_SLOPES = 2.0, 3.25, 2.0
# Energy of slopes that noise would show in a lucky draw is not believed.
DOUBT, LEAST = 1.0, 0.02
# Neither class is rarer, and no label closer to its score, than the model can tell.
RAREST, CLOSEST = 1e-3, 0.99
TINY = 1e-9  # Owen's T is asked for ratios
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
# Pairs of standard normal numbers, and what each counts.
PAIRS = np.stack(np.meshgrid(_POINTS, _POINTS, indexing="ij")).reshape(2, -1)
COUNTS = np.outer(_WEIGHTS, _WEIGHTS).ravel() / _WEIGHTS.sum() ** 2


def solve_with_fallback(moments: NoisyMoments) -> Array:
    """Return w (p,) by `solve_weights`, or the majority's rule."""
    return majority_fallback(moments, solve_weights(moments))


def majority_fallback(moments: NoisyMoments, w: Array) -> Array:
    """Return ``w`` (p,), or the majority's rule if that does as well."""
    clear = (
        CLEAREST_MAJORITY
        if SlopeMoment.from_moments(moments).energy_excess > VISIBLE_SLOPES
        else CLEAR_MAJORITY
    )
    sure = abs(moments.label[0, 0]) > clear * np.sqrt(moments.noise)
    if sure and expected_gain(moments, w) <= 0:
        return np.asarray(np.eye(1, len(w))[0] * np.sign(moments.label[0, 0]))
    return w


def expected_gain(moments: NoisyMoments, w: Array) -> float:
    """Return the expected gain in accuracy of w (p,) over the majority.

    The mean over the posterior of (b, g), by a fixed quadrature.
    """
    h_0, second, slopes = moments.label[0, 0], moments.second, w[1:]
    length = float(np.sqrt(slopes @ second.around @ slopes / second.corner))
    if length == 0:
        return 0.0
    r = np.sqrt(second.corner)
    share = (1 + (h_0 + np.sqrt(moments.noise) * PAIRS[0]) / r) / 2
    k = ndtri(np.clip(share, RAREST, 1 - RAREST))
    mean, spread = SlopeMoment.from_moments(moments).posterior_along(slopes)
    density = np.exp(-(k**2) / 2) / np.sqrt(2 * np.pi)
    correlation = (mean + spread * PAIRS[1]) / (2 * r * density * length)
    cut = (w[0] + float(second.centre @ slopes)) / length
    agreement_rate = agreement_probability(
        np.clip(correlation, -CLOSEST, CLOSEST), cut, k
    )
    return float(COUNTS @ (agreement_rate - ndtr(np.sign(h_0) * k)))


@dataclass(frozen=True)
class SlopeMoment:
    """The slope moment m (d,) = h_1 - c h_0, its variance, and C (d, d)."""

    moment: Array
    noise: float
    around: Array

    @classmethod
    def from_moments(cls, moments: NoisyMoments) -> SlopeMoment:
        """Return the slope moment of two classes."""
        return cls(*moments.slopes, moments.second.around)

    @property
    def energy_excess(self) -> float:
        """The excess of m's energy over the noise, in standard deviations."""
        d = len(self.moment)
        energy = float(self.moment @ self.moment) / self.noise
        return (energy - d) / float(np.sqrt(2 * d))

    def posterior_along(self, w: Array) -> tuple[float, float]:
        """Return mean and standard deviation of w'r g, given m."""
        d = len(w)
        believed = max((self.energy_excess - DOUBT) * np.sqrt(2 * d), LEAST * d)
        ridge = float(np.trace(self.around)) / believed
        shrinkage = np.linalg.solve(self.around + ridge * np.eye(d), self.around)
        variance = max(self.noise * float(w @ shrinkage @ w), 0.0)
        return float(w @ shrinkage.T @ self.moment), float(np.sqrt(variance))


def agreement_probability(correlation: Array, h: float, k: Array) -> Array:
    """Return the probability that two cut normal numbers agree.

    By Owen's T: 1 - 2 T(h, a) - 2 T(k, b) - [h k < 0], a = (k/h - r)/sqrt(1 - r^2) and
    b = (h/k - r)/sqrt(1 - r^2), r the correlation.
    """
    u = h if abs(h) > TINY else TINY
    v = np.where(np.abs(k) > TINY, k, TINY)
    free = np.sqrt(1 - correlation**2)
    parts = owens_t(u, (v / u - correlation) / free)
    parts += owens_t(v, (u / v - correlation) / free)
    return np.asarray(1 - 2 * parts - (u * v < 0))
