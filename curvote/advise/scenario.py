"""Scenario of an expectation: a signal of known strength, and clients who lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray

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

    def chance(self, x: FloatArray) -> FloatArray:
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

    def error(
        self, along: FloatArray, across: FloatArray, intercept: FloatArray
    ) -> FloatArray:
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


@dataclass(frozen=True)
class Lies:
    """Some of the clients pull in one direction.

    They send a possible message that points there; one that mixes slopes, intercept
    and second moment does more (docs/privacy.md, "Liars").

    Parameters
    ----------
    share : float in [0, 1/2)
        Of the clients.
    across : bool, default=False
        Whether they pull across the signal instead of against it, which turns a rule
        where too few lie to reverse it.

    Examples
    --------
    >>> from curvote.theory import expect_votes, strengths
    >>> middle = strengths()["middle"]
    >>> found = [expect_votes(1000, 4, 4.0, middle, lies=Lies(f)) for f in (0, 0.2)]
    >>> print([round(each.error, 2) for each in found])  # a fifth turns the answer
    [0.27, 0.54]
    """

    share: float
    across: bool = False

    def __post_init__(self) -> None:
        validate.minority(liars=self.share)

    def pull(self, slant: FloatArray) -> FloatArray:
        """Return the unit vector (d,) of the pull; ``slant`` (d,) is the signal's.

        Of one number only the sign can be turned.
        """
        if not self.across or len(slant) == 1:
            return -slant
        # Any other axis, less its part along the signal.
        other = np.eye(len(slant))[int(np.abs(slant).argmin())]
        other -= (other @ slant) * slant
        return np.asarray(other / np.linalg.norm(other))


NO_LIES = Lies(0.0)


def hidden_signal_error(epsilon: float, liars: float) -> float:
    """Return the best rule's error from which on liars can hide every signal.

    Whatever the protocol, as long as each client sends one message by a mechanism that
    is private at ``epsilon``, and each is a liar with probability f = ``liars``, in
    [0, 1/2): liars who know the signal make what all clients send look the same as for
    the signal with all labels turned. So every rule errs on half of the records in the
    mean of both. 1/2 without liars, 0 where they can hide everything.

    An epsilon-private message has laws for (z, y) and (z, -y) that differ by tanh(
    epsilon/2) in total variation at most (Kairouz, Oh & Viswanath 2015); for a signal
    and its reverse therefore by t tanh(epsilon/2), t = E|2 P(y = 1 | z) - 1|, that is
    1 - 2 error of the best rule. Lies that even it out exist if and only if it is at
    most f/(1 - f). Mechanisms may differ, and depend on earlier messages: these are
    alike, too. It is the case of one bit of the attack on every non-interactive
    protocol by Cheu, Smith & Ullman (2021, doi 10.29012/jpc.754); over large domains
    theirs needs fewer liars than this bound says.
    """
    share = validate.minority(liars=liars)
    distance = math.tanh(validate.positive(epsilon=epsilon) / 2)
    return max(0.0, (1 - share / ((1 - share) * distance)) / 2)
