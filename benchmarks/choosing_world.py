"""Records of a known signal, and what three protocols make of them.

Coefficients are standard normal and the label is logistic in one direction of them
(`curvote.advise.direct`), so the error of any classifier is known without labels.
Public constants turn coefficients x into z = (x - centre)/scale; the true ones are 0
and 1. Reports, votes and decoding are the library's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.advise.direct import Signal
from curvote.base.entropy import SeededEntropy
from curvote.client.report import (
    DirectionReporter,
    Reporter,
    candidate_scores,
    draw_votes,
)
from curvote.learning import learners
from curvote.learning.directions import (
    Line,
    ReportMean,
    estimate_whitening,
    one_round_classifier,
    two_round_classifier,
)
from curvote.learning.votes import (
    average_classifiers,
    averaging_weights,
    draw_subsets,
    estimate_utility,
    reversal_mask,
    reversed_utility,
)
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.arms import FIRST_ROUND_SHARE, make_directions
from curvote.systems.direct.system import choose_protocol

Array = NDArray[np.float64]

FRESH = 20_000
DIRECTIONS = 100  # that protocol `votes` asks about


@dataclass(frozen=True)
class Constants:
    """What is public: z = (x - centre)/scale, each (d,)."""

    centre: Array
    scale: Array

    @classmethod
    def of(cls, d: int, off: float = 0.0, times: float = 1.0) -> Constants:
        """Every coordinate's centre is ``off`` and its scale ``times`` the truth."""
        return cls(np.full(d, off), np.full(d, times))

    @classmethod
    def of_volunteers(cls, rng: np.random.Generator, d: int, count: int) -> Constants:
        """Mean and standard deviation of some records."""
        x = rng.standard_normal((count, d))
        return cls(x.mean(axis=0), x.std(axis=0, ddof=1))

    def z(self, x: Array) -> Array:
        return (x - self.centre) / self.scale


@dataclass(frozen=True)
class World:
    """A signal along ``slant`` (d,), and the constants that are public."""

    signal: Signal
    slant: Array
    public: Constants
    rng: np.random.Generator

    @classmethod
    def draw(cls, signal: Signal, d: int, seed: int) -> World:
        rng = np.random.default_rng(seed)
        slant = rng.standard_normal(d)
        return cls(signal, slant / np.linalg.norm(slant), Constants.of(d), rng)

    @property
    def d(self) -> int:
        return len(self.slant)

    @property
    def entropy(self) -> SeededEntropy:
        return SeededEntropy(int(self.rng.integers(2**62)))

    def clients(self, n: int) -> tuple[Array, Array]:
        """Return z (n, d) and labels (n,)."""
        x = self.rng.standard_normal((n, self.d))
        chance = self.signal.chance(x @ self.slant)
        return self.public.z(x), np.where(self.rng.random(n) < chance, 1, -1)

    def error(self, rule: Line) -> float:
        """Return the error of a rule of z: an integral."""
        coef = rule[0] / self.public.scale
        along = float(coef @ self.slant)
        across = np.sqrt(max(float(coef @ coef) - along**2, 0.0))
        constant = rule[1] - float(coef @ self.public.centre)
        parts = (np.array([part]) for part in (along, across, constant))
        return float(self.signal.error(*parts)[0])

    def error_of_tanh(self, rule: Line) -> float:
        """Return the error of a rule of tanh(z), over fresh records."""
        x = self.rng.standard_normal((FRESH, self.d))
        positive = np.tanh(self.public.z(x)) @ rule[0] + rule[1] > 0
        chance = self.signal.chance(x @ self.slant)
        return float(np.where(positive, 1 - chance, chance).mean())


def direct(world: World, n: int, epsilon: float, arm: str | None = None) -> float:
    """Return the error of one run of `direct`."""
    chosen = arm or choose_protocol(n, world.d, epsilon).arm or "mean"
    given = make_directions(str(chosen), world.d, "standard", "auto")
    reporter = DirectionReporter.build(given, epsilon)
    z, labels = world.clients(n)

    def mean(z: Array, labels: Array) -> ReportMean:
        return ReportMean.from_reports(
            reporter.release(z, labels, world.entropy, study=True)
        )

    if chosen != "two":
        return world.error(one_round_classifier(mean(z, labels), given, epsilon))
    first = round(FIRST_ROUND_SHARE * n)
    one = mean(z[:first], labels[:first])
    made = estimate_whitening(one, given, epsilon)
    other = mean(made.apply(z[first:]), labels[first:])
    return world.error(two_round_classifier((one, other), made, given, epsilon))


def votes(world: World, n: int, epsilon: float) -> float:
    """Return the error of one run of `votes`."""
    w = world.rng.standard_normal((DIRECTIONS, world.d + 1))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    s = make_directions("mean", world.d, "standard", "auto").intercept
    drawn = w[:, 1:], s * w[:, 0]
    return world.error(_elected(world, world.clients(n), drawn, epsilon, 0.5))


def mrma(world: World, n: int, epsilon: float, plan: dict[str, Any]) -> float:
    """Return the error of one run of `mrma`, learner centroid, of tanh(z).

    ``plan`` is the planner's, for ``n`` clients.
    """
    z, labels = world.clients(n)
    z, train = np.tanh(z), slice(plan["n_train"])
    reporter, entropy = (
        Reporter.build(world.d, epsilon, "laplace", "equal"),
        world.entropy,
    )
    reports = reporter.release(z[train], labels[train], entropy, entropy, study=True)
    rows = draw_subsets(
        world.rng, plan["n_train"], plan["n_learners"], plan["n_per_learner"]
    )
    fits = learners.fit("centroid", reports[0][rows], reports[1][rows])
    rest, drawn = slice(plan["n_train"], None), (fits.coef, fits.intercept)
    voters = z[rest], labels[rest]
    return world.error_of_tanh(_elected(world, voters, drawn, epsilon, plan["cutoff"]))


def _elected(
    world: World,
    voters: tuple[Array, Array],
    drawn: tuple[Array, Array],
    epsilon: float,
    cutoff: float,
) -> Line:
    """Return the average of classifiers, weighed by one noised bit of each voter."""
    (z, labels), count = voters, len(drawn[0])
    judge = world.rng.permutation(np.arange(len(z)) % count)
    right = draw_votes(
        candidate_scores(z, *drawn, judge), labels, epsilon, world.entropy
    )
    n = np.bincount(judge, minlength=count)
    positive = np.bincount(judge, weights=right, minlength=count)
    utility = estimate_utility(positive, n, BinaryRR(epsilon=epsilon).keep)
    flipped = reversal_mask(positive, n)
    better = reversed_utility(utility.value, flipped)
    weight, _ = averaging_weights(better, cutoff, "soft")
    return average_classifiers(*drawn, np.where(flipped, -weight, weight))


def repeated(run: Callable[[int], float], times: int) -> tuple[float, float]:
    """Return the mean of run(seed) and its standard error."""
    found = [run(seed) for seed in range(times)]
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(times))
