"""Prior belief of the planner: two shapes of a label's law, and how useful rules are.

Both are in units of a standard deviation along the line through the class means, with
the origin midway between these. A rule is given by its slope along the line, the root
of its squared slopes across it (in units of the deviation there), and its intercept.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, owens_t

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray

FARTHEST = 40.0  # standard deviations between a mean and the threshold: no error left
TINY = 1e-9  # Owen's T is asked for ratios


@dataclass(frozen=True)
class Shape:
    """A law with ``best`` accuracy of a linear rule and a share ``positive`` of +1.

    Its kinds say the ``distance`` between the class means, the standard deviation along
    the line ``within`` a class, and the ``accuracy`` of rules, whose arrays share a
    shape.
    """

    best: float
    positive: float


class TwoClasses(Shape):
    """Two normal classes that scatter alike around their means."""

    @cached_property
    def depth(self) -> float:
        """Return the distance of each mean from the middle.

        At the best threshold p Phi(depth + c) + (1 - p) Phi(depth - c) = ``best``, with
        c = ln(p/(1 - p)) / (2 depth).
        """
        log_odds = math.log(self.positive / (1 - self.positive))

        def excess(depth: float) -> float:
            return float(self._share_right(depth, log_odds / (2 * depth))) - self.best

        return float(brentq(excess, TINY, FARTHEST))

    @property
    def distance(self) -> float:
        """Return twice the depth."""
        return 2 * self.depth

    @property
    def within(self) -> float:
        """Return the unit itself."""
        return 1.0

    def accuracy(
        self, along: FloatArray, across: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return p Phi(m + o) + (1 - p) Phi(m - o), m and o in deviations of f(z)."""
        scale = np.hypot(along, across)
        return self._share_right(along / scale * self.depth, intercept / scale)

    def _share_right(self, reach: ArrayLike, offset: ArrayLike) -> FloatArray:
        ahead, behind = np.add(reach, offset), np.subtract(reach, offset)
        share = self.positive
        return np.asarray(share * ndtr(ahead) + (1 - share) * ndtr(behind))


class OneCloud(Shape):
    """One normal cloud; the label is +1 where a noisy score along the line is high.

    A probit regression, nearly a logistic one: the score v and z along the line are
    standard normal with a correlation, and the label is +1 where v > ``threshold``.
    """

    @property
    def threshold(self) -> float:
        """Return the score that a share ``positive`` exceeds."""
        return float(-ndtri(self.positive))

    @cached_property
    def correlation(self) -> float:
        """Return the correlation of z along the line with the score."""

        def excess(correlation: float) -> float:
            cut = self.threshold / correlation
            share = same_side_probability(correlation, cut, self.threshold)
            return float(share) - self.best

        return float(brentq(excess, TINY, 1 - TINY))

    @property
    def distance(self) -> float:
        """Return E(z | +1) - E(z | -1)."""
        density = math.exp(-(self.threshold**2) / 2) / math.sqrt(2 * math.pi)
        return self.correlation * density / (self.positive * (1 - self.positive))

    @property
    def within(self) -> float:
        """Return the deviation in a class that the distance leaves of variance 1."""
        share = self.positive
        return math.sqrt(1 - share * (1 - share) * self.distance**2)

    def accuracy(
        self, along: FloatArray, across: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return the share of f(z) and the score on the same side of their cuts."""
        scale = np.hypot(along, across)
        centre = along * (self.positive - 0.5) * self.distance + intercept
        correlation = self.correlation * along / scale
        return same_side_probability(correlation, -centre / scale, self.threshold)


def same_side_probability(
    correlation: float | FloatArray, h: float | FloatArray, k: float
) -> FloatArray:
    """Return P(u > h, v > k) + P(u < h, v < k) for standard normal u and v.

    By Owen's T (Owen 1956): 1 - 2 T(h, a) - 2 T(k, b) - [h k < 0], where
    a = (k/h - r)/sqrt(1 - r^2), b = (h/k - r)/sqrt(1 - r^2), r the correlation.
    """
    u = np.where(np.abs(h) < TINY, TINY, h)
    v = k if abs(k) > TINY else TINY
    free = np.sqrt(1 - np.square(correlation))
    parts = owens_t(u, (v / u - correlation) / free)
    parts += owens_t(v, (u / v - correlation) / free)
    return np.asarray(1 - 2 * parts - (u * v < 0))


SHAPES: dict[str, type[TwoClasses | OneCloud]] = {
    "classes": TwoClasses,
    "cloud": OneCloud,
}


@dataclass(frozen=True)
class UtilityPrior:
    """A belief about how useful classifiers of a task can be.

    Parameters
    ----------
    best : float in (``constant``, 1)
        The accuracy of the best linear rule, without noise.
    spread : float in (0, 1], default=0.3
        The standard deviation of a rescaled coordinate across the line through the
        class means; the range of a coordinate is [-1, 1].
    separation : float above 0, or None, default=None
        The distance between the class means in the same units; None takes the one that
        follows from the other numbers if z scatters along the line as across.
        `prior_from_weak` finds it from what weak classifiers achieve.
    positive : float in (0, 1), default=0.5
        The share of class +1.
    shape : "classes" or "cloud", default="classes"
        Two groups that scatter around their means (the sick and the healthy), or one
        group in which the chance of +1 rises along the line (a logistic model).

    Examples
    --------
    >>> prior = UtilityPrior(best=0.9, positive=0.7)
    >>> print(prior.constant, f"{prior.distance:.2f}")
    0.7 0.73
    """

    best: float
    spread: float = 0.3
    separation: float | None = None
    positive: float = 0.5
    shape: str = "classes"

    def __post_init__(self) -> None:
        validate.fraction(positive=self.positive)
        validate.one_of(SHAPES, shape=self.shape)
        if not self.constant < self.best < 1:
            raise UserError(
                f"best is {self.best!r}; the best rule must be right more often than"
                f" the constant one, {self.constant:g}, and wrong for somebody."
            )
        if not 0 < self.spread <= 1:
            raise UserError(
                f"spread is {self.spread!r}; a coordinate of [-1, 1] has a standard"
                " deviation in (0, 1]."
            )
        if self.separation is not None:
            validate.positive(separation=self.separation)

    @property
    def constant(self) -> float:
        """Return the accuracy of the classifier that names the larger class."""
        return max(self.positive, 1 - self.positive)

    @property
    def distance(self) -> float:
        """Return the distance between the class means, stated or following."""
        return self.separation or self.spread * self._law.distance

    @property
    def along(self) -> float:
        """Return the standard deviation in a class along the line of means."""
        return self._unit * self._law.within

    def utility(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return the accuracy of rules ``coef`` [..., d], ``intercept`` [...].

        In coordinates whose origin is the middle of the class means and whose first
        axis leads from -1 to +1. One without slope, as of classifiers that cancel,
        names +1 where its intercept is above 0, else -1.
        """
        across = self.spread * np.sqrt(np.square(coef[..., 1:]).sum(axis=-1))
        along, flat = self._unit * coef[..., 0], (coef == 0).all(axis=-1)
        constant = np.where(intercept > 0, self.positive, 1 - self.positive)
        sloped = self._law.accuracy(np.where(flat, 1.0, along), across, intercept)
        return np.where(flat, constant, sloped)

    @cached_property
    def _law(self) -> TwoClasses | OneCloud:
        return SHAPES[self.shape](self.best, self.positive)

    @property
    def _unit(self) -> float:
        """Return the length of the shape's unit, in those of z."""
        return self.distance / self._law.distance
