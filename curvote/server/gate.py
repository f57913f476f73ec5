"""A gate for unequal classes: the rule that was decoded, or the majority.

Where classes are very unequal and little is known, a decoded rule errs more often than
the constant classifier. Which of them errs less is a matter of what was released
anyway, the label moment h and the second moment M, so that asking costs no budget.

The model: with r = sqrt(M_00) for u_0, x = u_1/r is normal with centre c and covariance
S = C/M_00, and y is the sign of a linear score of x plus normal noise (probit). Of b =
E[y] and g = Cov(y, x) the server knows, by `curvote.shrinkage`,

    b ~ N(h_0/r, v/r^2),  r g ~ N(C (C + ridge)^-1 m, own C (C + ridge)^-1),

with m = h_1 - c h_0. A rule w'(x - c) + a, w'S w = 1, agrees with y as two normal
numbers of correlation w'g/(2 phi(k)) do, cut at a and k, where Phi(k) = (1 + b)/2 (Owen
1956).

The errors it predicts are far too rosy where records are skewed or shifted. They serve
to compare, and are never shown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, owens_t

from curvote.shrinkage import Known, ridge, solve

Array = NDArray[np.float64]

# A rule that is expected to gain no more than this is not worth what it risks, where
# the larger class stands out by this many standard deviations.
LEAST_GAIN, CLEAR = 0.005, 2.0
# Neither class is rarer, and no label closer to its score, than the model can tell.
RAREST, CLOSEST = 1e-3, 0.99
TINY = 1e-9  # Owen's T is asked for ratios
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
# Pairs of standard normal numbers, and what each counts.
PAIRS = np.stack(np.meshgrid(_POINTS, _POINTS, indexing="ij")).reshape(2, -1)
COUNTS = np.outer(_WEIGHTS, _WEIGHTS).ravel() / _WEIGHTS.sum() ** 2


def gated(known: Known) -> Array:
    """Return w (p,): the rule of `solve`, or the majority's if that does as well."""
    return guarded(known, solve(known))


def guarded(known: Known, w: Array) -> Array:
    """Return ``w`` (p,), or the majority's rule if that does as well."""
    sure = abs(known.label[0, 0]) > CLEAR * np.sqrt(known.noise)
    if sure and expected_gain(known, w) <= LEAST_GAIN:
        return np.eye(1, len(w))[0] * np.sign(known.label[0, 0])
    return w


def expected_gain(known: Known, w: Array) -> float:
    """Return how much less often w (p,) errs than the class that h_0 names.

    The mean over the posterior of (b, g), by a fixed quadrature.
    """
    centre, side = known.second.centre, np.sign(known.label[0, 0])
    mean, spread = _slope(known, w[1:])
    length = float(np.sqrt(w[1:] @ known.second.around @ w[1:] / known.second.corner))
    if length == 0:
        return 0.0
    r = np.sqrt(known.second.corner)
    share = (1 + known.label[0, 0] / r + np.sqrt(known.noise) / r * PAIRS[0]) / 2
    k = ndtri(np.clip(share, RAREST, 1 - RAREST))
    density = np.exp(-(k**2) / 2) / np.sqrt(2 * np.pi)
    along = (mean + spread * PAIRS[1]) / (2 * density * length)
    cut = (w[0] + float(centre @ w[1:])) / length
    right = agreement(np.clip(along, -CLOSEST, CLOSEST), cut, k)
    return float(COUNTS @ (right - ndtr(side * k)))


def _slope(known: Known, w: Array) -> tuple[float, float]:
    """Return mean and standard deviation of w'g, given what was released."""
    second, d = known.second, len(w)
    moment = known.label[0, 1:] - second.centre * known.label[0, 0]
    more, own = ridge(known)
    kept = np.linalg.solve(second.around + more * np.eye(d), second.around)
    variance = max(own * float(w @ kept @ w), 0.0)
    mean, r = float(w @ kept.T @ moment), np.sqrt(second.corner)
    return mean / r, float(np.sqrt(variance) / r)


def agreement(correlation: Array, h: float, k: Array) -> Array:
    """Return P(u > -h, v > -k) + P(u < -h, v < -k) for standard normal u and v.

    By Owen's T: 1 - 2 T(h, a) - 2 T(k, b) - [h k < 0], a = (k/h - r)/sqrt(1 - r^2) and
    b = (h/k - r)/sqrt(1 - r^2), r the correlation.
    """
    u = h if abs(h) > TINY else TINY
    v = np.where(np.abs(k) > TINY, k, TINY)
    free = np.sqrt(1 - correlation**2)
    parts = owens_t(u, (v / u - correlation) / free)
    parts += owens_t(v, (u / v - correlation) / free)
    return np.asarray(1 - 2 * parts - (u * v < 0))
