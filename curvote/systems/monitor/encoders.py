"""Encoders of an answer: the one of least variance for what is asked, by its formula.

An answer is one of W words. Every encoder's decoded code is an unbiased vector Z (W,)
of the word's indicator, so a share of words, or the mean of a number that words stand
for, is linear in it: f . Z. Here are that number's variance and its range, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np

from curvote.base.validate import FloatArray
from curvote.mechanisms import frequency_oracles as oracles
from curvote.mechanisms.factory import make
from curvote.mechanisms.labels import SupportMechanism
from curvote.mechanisms.randomized_response import KRR

# The numbers of levels that a bounded number may be rounded to, at random so that the
# mean stays: of two levels one bit leaves, as in the one-bit mean.
LEVELS: Final = (2, 3, 5, 9, 17)
NAMES: Final = (
    KRR.name,
    oracles.SubsetSelection.name,
    oracles.UnarySymmetric.name,
    oracles.UnaryOptimised.name,
    oracles.Hadamard.name,
)


@dataclass(frozen=True)
class Encoder:
    """A mechanism by name on ``words``, and the variance that one answer leaves.

    ``variance`` is the sum over words of that of their decoded shares, the mean over
    the words; of a number, in units of its range, that of its mean, the mean over all
    levels. ``alternatives`` has the least that each other mechanism leaves.
    """

    name: str
    words: int
    params: Mapping[str, Any]
    variance: float
    alternatives: Mapping[str, float] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Why it is taken, in words."""
        ranked = sorted(self.alternatives.items(), key=lambda item: item[1])
        least = ", ".join(f"{name} {value:.3g}" for name, value in ranked)
        return (
            f"{self.name} on {self.words} words leaves least variance,"
            f" {self.variance:.3g} an answer ({least})"
        )

    def mechanism(self, epsilon: float) -> SupportMechanism:
        """Return the mechanism."""
        return build(self.name, epsilon, self.words, self.params)


def build(
    name: str, epsilon: float, words: int, params: Mapping[str, Any]
) -> SupportMechanism:
    """Return the mechanism ``name`` on ``words``."""
    mechanism = make(name, epsilon=epsilon, n_classes=words, **params)
    return cast("SupportMechanism", mechanism)


def best_for_shares(words: int, epsilon: float) -> Encoder:
    """Return the encoder that leaves the shares of all words least variance."""

    def spread(mechanism: SupportMechanism) -> float:
        return float(mechanism.variance(np.arange(words)).sum(axis=1).mean())

    return _least([words], epsilon, spread)


def best_for_mean(epsilon: float, groups: int = 1) -> Encoder:
    """Return levels and encoder that leave the mean of a number least variance.

    It lies in [0, 1], and all its values count alike. Each of several private
    ``groups`` has its own words; the mean is that over all of them.
    """

    def spread(mechanism: SupportMechanism) -> float:
        levels = mechanism.n_classes // groups
        values = np.tile(np.linspace(0, 1, levels), groups)
        rounding = 1 / (6 * (levels - 1) ** 2)  # of u (1 - u) of a step, its mean
        return rounding + float(np.mean(functional_variance(mechanism, values)))

    return _least([groups * levels for levels in LEVELS], epsilon, spread)


def _least(sizes: list[int], epsilon: float, spread: Any) -> Encoder:
    least: dict[str, Encoder] = {}
    for words in sizes:
        for name, params in _variants(words, epsilon):
            encoder = Encoder(name, words, params, 0.0)
            value = spread(encoder.mechanism(epsilon))
            if name not in least or value < least[name].variance:
                least[name] = Encoder(name, words, params, value)

    def order(encoder: Encoder) -> tuple[float, int]:
        # Of equal ones the first: codes of the fewest bytes.
        return round(encoder.variance, 12), NAMES.index(encoder.name)

    best = min(least.values(), key=order)
    rest = {e.name: e.variance for e in least.values() if e is not best}
    return Encoder(best.name, best.words, best.params, best.variance, rest)


def _variants(words: int, epsilon: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield names and parameters; of subsets the sizes around the two usual ones.

    They tell two words apart best, or all shares.
    """
    for name in NAMES:
        if name == oracles.SubsetSelection.name:
            pair = oracles.best_subset_size(epsilon, words)
            usual = {pair, round(words / (1 + math.exp(min(epsilon, 500.0))))}
            sizes = {size + step for size in usual for step in (-1, 0, 1, 2)}
            for omega in sorted(sizes & {*range(1, words)}):
                yield name, {"omega": omega}
        else:
            yield name, {}


def functional_variance(mechanism: Any, f: FloatArray) -> FloatArray:
    """Return Var(f . Z | word), (W,), of the decoded code Z, exactly."""
    if isinstance(mechanism, oracles.Hadamard):
        outputs = mechanism.outputs()
        numbers = mechanism.decode(outputs) @ f
        chances = mechanism.probabilities(np.arange(mechanism.n_classes))
        return np.asarray(chances @ numbers**2 - f**2)
    p, q, k = float(mechanism.p), float(mechanism.q), mechanism.n_classes
    rest, squares = f.sum() - f, (f**2).sum() - f**2
    if isinstance(mechanism, oracles.UnarySymmetric | oracles.UnaryOptimised):
        return np.asarray(p * (1 - p) * f**2 + q * (1 - q) * squares) / (p - q) ** 2
    w = getattr(mechanism, "omega", 1)
    # Two others, or the word and another, are in a set of w words.
    pairs = w * (w - 1) - p * 2 * (w - 1)
    two_others = pairs / ((k - 1) * (k - 2)) if k > 2 else 0.0
    with_word = p * (w - 1) / (k - 1)
    second = p * f**2 + q * squares + 2 * with_word * f * rest
    second = second + two_others * (rest**2 - squares)
    return np.asarray(second - (p * f + q * rest) ** 2) / (p - q) ** 2


def functional_range(mechanism: Any, f: FloatArray) -> tuple[float, float]:
    """Return the least and the largest f . Z that a code can have."""
    if isinstance(mechanism, oracles.Hadamard):
        numbers = mechanism.decode(mechanism.outputs()) @ f
        return float(numbers.min()), float(numbers.max())
    p, q = float(mechanism.p), float(mechanism.q)
    if isinstance(mechanism, oracles.UnarySymmetric | oracles.UnaryOptimised):
        low, high = np.minimum(f, 0).sum(), np.maximum(f, 0).sum()
    else:
        w, ordered = getattr(mechanism, "omega", 1), np.sort(f)
        low, high = ordered[:w].sum(), ordered[-w:].sum()
    base, gap = q * f.sum(), p - q
    return float((low - base) / gap), float((high - base) / gap)
