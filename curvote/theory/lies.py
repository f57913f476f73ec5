"""Clients who lie: what they can do, and what no protocol can do about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote import validate

Array = NDArray[np.float64]


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

    def pull(self, slant: Array) -> Array:
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
