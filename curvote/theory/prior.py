"""Belief about a task before anybody reports: the planner's only knowledge.

Rescaled records z in [-1, 1]^d differ by class along one line, the one through the two
class means. Across it they scatter alike in every direction and tell nothing: a rule at
an angle to that line loses accuracy, one with a wrong threshold too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from curvote import validate
from curvote.errors import UserError
from curvote.theory.shapes import SHAPES, Shape
from curvote.validate import FloatArray


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
        axis leads from -1 to +1.
        """
        across = self.spread * np.sqrt(np.square(coef[..., 1:]).sum(axis=-1))
        return self._law.accuracy(self._unit * coef[..., 0], across, intercept)

    @cached_property
    def _law(self) -> Shape:
        return SHAPES[self.shape](self.best, self.positive)

    @property
    def _unit(self) -> float:
        """Return the length of the shape's unit, in those of z."""
        return self.distance / self._law.distance
