"""Formulas of MRMA: noised votes, total variation."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from scipy.stats import binom

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray


def keep_probability(epsilon: float) -> float:
    """Return q = e^epsilon / (1 + e^epsilon), for epsilon > 0 (MRMA, equation 7)."""
    return 1 / (1 + math.exp(-validate.positive(epsilon=epsilon)))


def bounded_variance(n: ArrayLike, epsilon: float) -> FloatArray:
    """Return the bound ((e^eps + 1)/(e^eps - 1))^2 / (4 n) on a utility's variance.

    ``n`` [...] >= 1 votes on the classifier at ``epsilon`` > 0 each. It is
    ``utility_variance`` at its largest, where the true accuracy is 1/2 (MRMA,
    theorem 3).
    """
    gain = math.tanh(validate.positive(epsilon=epsilon) / 2)
    return np.asarray(1 / (4 * _check_votes(n) * gain**2))


def reversal_right_exact(r: ArrayLike, n: ArrayLike, epsilon: float) -> FloatArray:
    """Return the probability that reversal leaves the better of f and -f.

    ``r`` [...] in [0, 1] is the true accuracy of f, ``n`` [...] its number of votes at
    ``epsilon`` > 0 each. With X ~ Bin(n, p), p = q r + (1 - q)(1 - r), and the rule of
    ``curvote.learning.votes`` (2 X < n reverses, a tie keeps) it is P(2 X >= n) for
    r > 1/2 and P(2 X < n) for r < 1/2. At r = 1/2 both are as good: 1.
    """
    accuracy, votes = _check_accuracy(r), _check_votes(n)
    chance = _right_vote_chance(accuracy, epsilon)
    keep_chance = binom.sf(np.ceil(votes / 2) - 1, votes, chance)
    right = np.where(accuracy > 0.5, keep_chance, 1 - keep_chance)
    return np.where(accuracy == 0.5, 1.0, right)


def reversal_right_normal(r: ArrayLike, n: ArrayLike, epsilon: float) -> FloatArray:
    """Return Phi(sqrt(n) (2q - 1) |r - 1/2| / sqrt(p (1 - p))), the normal form.

    The same arguments as ``reversal_right_exact``, to which it is an approximation
    that knows no ties. It puts right the probability of MRMA, theorem 5, in which the
    noise of the votes is missing.
    """
    accuracy, votes = _check_accuracy(r), _check_votes(n)
    p = _right_vote_chance(accuracy, epsilon)
    return _normal_probability(votes, np.abs(p - 0.5), p)


def reversal_right_printed(r: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return Phi(sqrt(n) |r - 1/2| / sqrt(r (1 - r))), as printed in MRMA, theorem 5.

    Too large for every finite epsilon: it is that of votes without noise.
    """
    accuracy = _check_accuracy(r)
    return _normal_probability(_check_votes(n), np.abs(accuracy - 0.5), accuracy)


def _normal_probability(
    votes: FloatArray, distance: FloatArray, p: FloatArray
) -> FloatArray:
    spread = np.sqrt(p * (1 - p))
    with np.errstate(divide="ignore"):  # a vote that is always the same: certainty
        return np.asarray(ndtr(np.sqrt(votes) * distance / spread))


def _right_vote_chance(accuracy: FloatArray, epsilon: float) -> FloatArray:
    """Return p, the probability of a vote "right" after randomization."""
    q = keep_probability(epsilon)
    return np.asarray(q * accuracy + (1 - q) * (1 - accuracy))


def _check_accuracy(r: ArrayLike) -> FloatArray:
    accuracy = validate.finite(r=r)
    if not ((accuracy >= 0) & (accuracy <= 1)).all():
        raise UserError(f"r is {r!r}; an accuracy must lie in [0, 1].")
    return accuracy


def _check_votes(n: ArrayLike) -> FloatArray:
    votes = validate.finite(n=n)
    if not ((votes >= 1) & (votes % 1 == 0)).all():
        raise UserError(f"n is {n!r}; a number of votes is whole and at least 1.")
    return votes


def stay_probability(scale: float) -> float:
    """Return P(|U + L| <= 1), U uniform on [-1, 1], L Laplace of ``scale`` > 0.

    1 - E exp(-(1 - U)/scale) = 1 - (1 - e^-x)/x with x = 2/scale.
    """
    x = 2 / validate.positive(scale=scale)
    return (x + math.expm1(-x)) / x


def total_variation(d: int, epsilon_z: float) -> float:
    """Return sup |P(A) - Q(A)|, half the L1 norm, in [0, 1].

    ``d`` >= 1 coordinates, ``epsilon_z`` > 0 for all of them. 1 - P(|U + L| <= 1)^d:
    what MRMA's figure A.6 plots.
    """
    scale = 2 * validate.at_least(1, d=d) / validate.positive(epsilon_z=epsilon_z)
    return -math.expm1(d * math.log(stay_probability(scale)))


def l1_distance(d: int, epsilon_z: float) -> float:
    """Return 2 sup |P(A) - Q(A)|, the whole L1 norm, in [0, 2].

    The convention of MRMA's theorem 4: twice ``total_variation``.
    """
    return 2 * total_variation(d, epsilon_z)


def theorem_4_term(d: int, epsilon_z: float) -> float:
    """Return 3/4 ``l1_distance``, what the move of z adds to the bound of theorem 4."""
    return 0.75 * l1_distance(d, epsilon_z)


Function = Callable[[FloatArray], ArrayLike]

# Panels of the quadrature end so many noise scales from z0, and at kinks.
STEPS = np.array([0.0, 2.0, 8.0, 32.0])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


@dataclass(frozen=True)
class Density:
    """The law of z on [low, high]: ``function`` is its density, up to a factor.

    ``kinks`` are the points where the density or a function to be averaged over it
    jumps or bends; the quadrature splits there.
    """

    function: Function
    low: float = -1.0
    high: float = 1.0
    kinks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise UserError(
                f"z lies in [{self.low!r}, {self.high!r}]; low must be below high, both"
                " finite."
            )

    def scale(self, epsilon_z: float) -> float:
        """Return the scale of the Laplace noise that protects z by ``epsilon_z``."""
        return (self.high - self.low) / validate.positive(epsilon_z=epsilon_z)


def uniform_density(*kinks: float) -> Density:
    """Return the uniform law on [-1, 1] of MRMA's figure 1."""
    return Density(np.ones_like, kinks=kinks)


def omega(
    z: ArrayLike, z0: ArrayLike, epsilon_z: float, density: Density | None = None
) -> FloatArray:
    """Return the weight of a client at z in the law of the label at a noised z0.

    MRMA, equation (5): omega(z | z0) = D(z0 - z) / E D(z0 - Z), D the noise's density;
    ``z`` and ``z0`` broadcast, 0 < epsilon_z < inf. ``density`` is the law of Z, by
    quadrature; None is uniform on [-1, 1], in closed form. E omega(Z | z0) = 1.
    """
    law = density or uniform_density()
    scale, at = law.scale(epsilon_z), _clip_to_interval(law, z0)
    kernel = np.exp(-np.abs(validate.finite(z=z) - at) / scale)
    if density is None:
        # E exp(-|z0 - Z|/scale) for Z ~ U(-1, 1)
        ends = np.expm1(-(1 + at) / scale) + np.expm1(-(1 - at) / scale)
        return np.asarray(kernel / (-scale * ends / 2))
    edges = np.sort(np.clip([law.low, *law.kinks, law.high], law.low, law.high))
    mass = float(_panel_integral(law.function, edges))
    return np.asarray(kernel * mass / _kernel_average(np.ones_like, at, scale, law))


def noised_eta(
    eta: Function,
    z0: ArrayLike,
    epsilon_z: float,
    keep: float = 1.0,
    density: Density | None = None,
) -> FloatArray:
    """Return eta^(epsilon)(z0), the law of the noised label at a noised z0 [...].

    MRMA, equation (4): 1/2 + (2q - 1) E[omega(Z | z0) (eta(Z) - 1/2)]. ``eta`` maps an
    array of z to P(Y = 1 | z) elementwise, ``keep`` is q in [1/2, 1] (1: the label is
    open), ``epsilon_z`` = inf leaves z open. Gauss-Legendre panels around z0; where
    eta jumps, name the point: ``density=uniform(0.3)``.
    """
    if not 0.5 <= keep <= 1:
        raise UserError(f"keep is {keep!r}; it must lie in [1/2, 1].")
    law = density or uniform_density()
    at = _clip_to_interval(law, z0)
    if epsilon_z == math.inf:
        return 0.5 + (2 * keep - 1) * (np.asarray(eta(at)) - 0.5)
    scale = law.scale(epsilon_z)
    weight = _kernel_average(np.ones_like, at, scale, law)
    bent = _kernel_average(eta, at, scale, law) / weight
    return np.asarray(0.5 + (2 * keep - 1) * (bent - 0.5))


def pointwise_utility(
    eta: Function,
    z0: ArrayLike,
    epsilon_z: float,
    keep: float = 1.0,
    density: Density | None = None,
) -> FloatArray:
    """Return g^(epsilon)(z0): how likely clean and noised labels agree.

    MRMA, equation (3): 1/2 + 2 (eta(z0) - 1/2)(eta^(epsilon)(z0) - 1/2). Below 1/2 the
    noised data mislead at z0. Arguments as in ``noised_eta``; ``eta`` is asked at z0
    itself, also beyond the interval.
    """
    clean = np.asarray(eta(validate.finite(z0=z0))) - 0.5
    return 0.5 + 2 * clean * (noised_eta(eta, z0, epsilon_z, keep, density) - 0.5)


def _clip_to_interval(law: Density, z0: ArrayLike) -> FloatArray:
    return np.clip(validate.finite(z0=z0), law.low, law.high)


def _kernel_average(
    eta: Function, z0: FloatArray, scale: float, law: Density
) -> FloatArray:
    """Return the integral of eta(z) density(z) exp(-|z - z0|/scale) for each z0."""
    around = z0[..., None] + scale * np.concatenate([-STEPS[:0:-1], STEPS])
    points = [law.low, *law.kinks, law.high]
    fixed = np.broadcast_to(points, (*z0.shape, len(points)))
    edges = np.sort(np.clip(np.concatenate([around, fixed], -1), law.low, law.high))
    centre = z0[..., None, None]

    def weighted(z: FloatArray) -> FloatArray:
        kernel = np.exp(-np.abs(z - centre) / scale)
        return np.asarray(kernel * np.asarray(law.function(z)) * np.asarray(eta(z)))

    return _panel_integral(weighted, edges)


def _panel_integral(function: Function, edges: FloatArray) -> FloatArray:
    """Return the integral over [first, last] edge, a Gauss-Legendre rule a panel."""
    half = np.diff(edges)[..., None] / 2
    z = edges[..., :-1, None] + half * (1 + _NODES)
    return np.asarray((half * _WEIGHTS * np.asarray(function(z))).sum(axis=(-2, -1)))
