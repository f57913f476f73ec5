"""What the tests of the mechanisms and of the exact samplers share."""

import inspect
import math
from fractions import Fraction
from typing import Any

import numpy as np

from curvote.base.errors import UserError
from curvote.mechanisms import factory, make, names
from curvote.mechanisms.base import Mechanism, ScalarMechanism

EPSILONS = (0.01, 0.1, 0.5, 1, 2, 5, 10)
ALPHA = 1e-6
SEED = 7


def names_of(kind: type[Mechanism]) -> list[str]:
    """Return the registry's names of this kind of mechanism."""
    return [name for name in names() if issubclass(factory.mechanism_class(name), kind)]


def required(epsilon: float) -> dict[str, Any]:
    """What constructors that ask for it are given; p, q: the optimised unary code's."""
    flip = math.exp(-epsilon)
    given = {"n_classes": 4, "d": 3, "delta": 1e-6, "prior": [0.4, 0.3, 0.2, 0.1]}
    return given | {"p": 0.5, "q": max(flip / (1 + flip), 2.0**-60)}


def build(name: str, epsilon: float, **params: Any) -> Mechanism:
    """Build a mechanism of the registry with the parameters that it asks for.

    ``d`` is for each class where both d and classes are asked for.
    """
    facts = inspect.signature(factory.mechanism_class(name)).parameters.items()
    asked = {param for param, fact in facts if fact.default is fact.empty}
    given = required(epsilon) | params
    needed = {param: given[param] for param in asked - {"epsilon"}} | params
    if {"d", "n_classes"} <= asked:
        needed["d"] *= needed["n_classes"]
    return make(name, epsilon=epsilon, **needed)


def accepted(mechanism: ScalarMechanism, x: float) -> bool:
    """Say whether x is in the mechanism's domain or can be clipped into it."""
    try:
        mechanism.clip(x)
    except UserError:
        return False
    return True


def probes(mechanism: ScalarMechanism) -> np.ndarray:
    """Inputs across the domain, its ends included, that the mechanism accepts."""
    grid = np.linspace(mechanism.low, mechanism.high, 9)
    return np.array([x for x in grid if accepted(mechanism, x)])


def follows(draws: np.ndarray, law: ScalarMechanism, x: float) -> bool:
    """Say whether the draws' distribution function is the declared one, at ALPHA.

    The Dvoretzky-Kiefer-Wolfowitz inequality holds for laws with jumps too.
    """
    at, counts = np.unique(draws, return_counts=True)
    reached = np.cumsum(counts) / draws.size
    declared = law.cdf(x, at)
    below = law.cdf(x, np.nextafter(at, -np.inf))
    gap = max(
        np.abs(reached - declared).max(),
        np.abs(reached - counts / draws.size - below).max(),
    )
    return bool(gap <= math.sqrt(math.log(2 / ALPHA) / (2 * draws.size)))


class Replay:
    """Hands out the given words, in order; asking for more is a failure."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, n: int) -> np.ndarray:
        assert n <= len(self.left), "more words were drawn than expected"
        taken, self.left = self.left[:n], self.left[n:]
        return np.array(taken, dtype=np.uint64)


def exp_oracle(x: Fraction) -> Fraction:
    """Return e^x for 0 <= x <= 3, too small by less than 2^-300, by its series."""
    term = total = Fraction(1)
    for k in range(1, 100):
        term *= x / k
        total += term
    return total
