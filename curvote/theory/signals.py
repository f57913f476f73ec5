"""Scenario of an expectation: a signal of known strength, and clients who lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from curvote import validate
from curvote.errors import UserError

Array = NDArray[np.float64]

# Midpoints and weights of a standard normal number: errors below 1e-5.
_STEP = 0.02
X = np.arange(-8 + _STEP / 2, 8, _STEP)
WEIGHTS = np.exp(-(X**2) / 2) / np.exp(-(X**2) / 2).sum()
_WIDEST = 1e3  # no slope and no intercept is farther out
_TINY = 1e-12


@dataclass(frozen=True)
class Signal:
    """P(y = +1 | x) = 1/(1 + exp(-slope x - intercept)), x = z along one direction.

    z is standard normal in every coordinate, as public coordinates should be.

    Parameters
    ----------
    balanced : float in (0, 1/2)
        On what the best rule errs, were the classes equal: gives the slope.
    positive : float in (0, 1), default=0.5
        The share of class +1: gives the intercept.

    Examples
    --------
    >>> signal = Signal(balanced=0.25, positive=0.8)
    >>> print(f"{signal.best:.2f} where the majority errs on {signal.majority:.2f}")
    0.16 where the majority errs on 0.20
    """

    balanced: float
    positive: float = 0.5

    def __post_init__(self) -> None:
        validate.fraction(positive=self.positive)
        if not 0 < self.balanced < 0.5:
            raise UserError(
                f"balanced is {self.balanced!r}; a rule that beats guessing errs on"
                " less than 0.5, and on somebody."
            )

    @cached_property
    def slope(self) -> float:
        """Return the slope: ``E[1/(1 + exp(slope |x|))] = balanced``."""

        def excess(slope: float) -> float:
            return float(WEIGHTS @ expit(-slope * np.abs(X))) - self.balanced

        return float(brentq(excess, 0, _WIDEST))

    @cached_property
    def intercept(self) -> float:
        """Return the intercept: E[P(y = +1)] = ``positive``."""

        def excess(intercept: float) -> float:
            return float(WEIGHTS @ expit(self.slope * X + intercept)) - self.positive

        return float(brentq(excess, -_WIDEST, _WIDEST))

    def chance(self, x: Array) -> Array:
        """Return P(y = +1 | x)."""
        return np.asarray(expit(self.slope * x + self.intercept))

    @property
    def best(self) -> float:
        """Return the error of the best rule."""
        chance = self.chance(X)
        return float(WEIGHTS @ np.minimum(chance, 1 - chance))

    @property
    def majority(self) -> float:
        """Return the error of the rule that always names the larger class."""
        return min(self.positive, 1 - self.positive)

    def error(self, along: Array, across: Array, intercept: Array) -> Array:
        """Return the errors of rules sign(w z + c), arrays of one shape [R].

        ``along`` is w along the signal's direction, ``across`` the length of the rest
        of w, which multiplies noise to this label.
        """
        level = np.multiply.outer(along, X) + np.asarray(intercept)[:, None]
        names = ndtr(level / np.maximum(across, _TINY)[:, None])
        chance = self.chance(X)
        return np.asarray((names * (1 - chance) + (1 - names) * chance) @ WEIGHTS)


WEAK, MIDDLE, STRONG = 0.40, 0.25, 0.10


def strengths(positive: float = 0.5) -> dict[str, Signal]:
    """Return a weak, a middle and a strong signal.

    Parameters
    ----------
    positive : float in (0, 1), default=0.5
        The share of class +1.

    Returns
    -------
    dict of Signal
        The best rule errs on 40, 25 and 10 % where the classes are equal, and has the
        same slopes where they are not.

    Examples
    --------
    >>> {name: signal.balanced for name, signal in strengths().items()}
    {'weak': 0.4, 'middle': 0.25, 'strong': 0.1}
    """
    errors = {"weak": WEAK, "middle": MIDDLE, "strong": STRONG}
    return {name: Signal(error, positive) for name, error in errors.items()}
