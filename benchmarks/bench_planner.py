"""The planner's predictions beside the simulated protocol, on settings nobody tuned.

Run with ``python -m benchmarks.bench_planner [--seed S] [--random K]
[--recommended K]``. A setting is a task (the law of its clients), N, d, epsilon and
sizes, all drawn at random; a few more take the sizes that the planner recommends. The
planner is told four numbers of the task (the best accuracy, the spread within the
classes, the distance of their means, the share of class +1) and whether there are two
classes or one cloud; not how these are shaped. The simulation is the real protocol:
exact Laplace reports, the library's learner, randomized votes, reversal, averaging,
fresh clients. Fails where they differ by more than two points.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from benchmarks.history import record
from curvote.base.entropy import SeededEntropy
from curvote.client.report import Reporter, candidate_scores, draw_votes
from curvote.learning import learners
from curvote.learning.votes import (
    average_classifiers,
    averaging_weights,
    draw_subsets,
    estimate_utility,
    reversal_mask,
    reversed_utility,
)
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.theory import Prediction, UtilityPrior, predict, recommend

Array = NDArray[np.float64]

TOLERANCE = 0.02
PRECISION = 0.0029  # standard error at which a simulation ends
FRESH, BATCH, MOST = 100_000, 100, 6000
BEST = (0.75, 0.97)


@dataclass(frozen=True)
class World:
    """Clients around a ``centre`` [d] who differ by class along a ``direction`` [d].

    ``shape`` normal or uniform: the coordinates of a class scatter so around its mean,
    centre + label direction. ``logistic``: all scatter uniformly around the centre and
    the label's log-odds rise along the direction.
    """

    shape: str
    direction: Array
    centre: Array
    spread: float
    positive: float

    def clients(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Return records (n, d) in [-1, 1] and labels (n,)."""
        z = self.centre + self._scatter(rng, (n, len(self.direction)))
        odds = logit(self.positive)
        if self.shape == "logistic":
            odds += 4 * (z - self.centre) @ self.direction / self.spread**2
        labels = np.where(rng.random(n) < expit(odds), 1.0, -1.0)
        if self.shape != "logistic":
            z += labels[:, None] * self.direction
        return np.clip(z, -1, 1), labels

    def _scatter(self, rng: np.random.Generator, size: tuple[int, int]) -> Array:
        if self.shape == "normal":
            return self.spread * rng.standard_normal(size)
        return self.spread * rng.uniform(-np.sqrt(3), np.sqrt(3), size)

    def prior(self, rng: np.random.Generator) -> UtilityPrior:
        """Return what is true of these clients, in the planner's terms."""
        z, labels = self.clients(rng, FRESH)
        first, second = z[labels > 0], z[labels < 0]
        middle = [part - part.mean(axis=0) for part in (first, second)]
        unit = self.direction / np.linalg.norm(self.direction)
        within = np.concatenate(middle)
        across = np.square(within).sum() - np.square(within @ unit).sum()
        # For every threshold: right are the -1 below it and the +1 above it.
        below = np.cumsum(-labels[np.argsort(z @ unit)])
        return UtilityPrior(
            best=float((below + len(first)).max() / FRESH),
            spread=float(np.sqrt(across / FRESH / (len(unit) - 1))),
            separation=float(np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))),
            positive=len(first) / FRESH,
            shape="cloud" if self.shape == "logistic" else "classes",
        )


@dataclass(frozen=True)
class Setting:
    world: World
    prior: UtilityPrior
    epsilon: float
    n_train: int
    n_vote: int
    n_per_learner: int
    n_learners: int
    cutoff: float

    @property
    def d(self) -> int:
        return len(self.world.direction)

    def predicted(self) -> Prediction:
        return predict(
            self.n_train,
            self.n_vote,
            self.d,
            self.epsilon,
            self.prior,
            n_per_learner=self.n_per_learner,
            n_learners=self.n_learners,
            cutoff=self.cutoff,
        )

    def recommended(self) -> Setting:
        """Return the same task with the sizes that the planner recommends."""
        n = self.n_train + self.n_vote
        plan = recommend(n, self.d, self.epsilon, self.prior)
        chosen = {k: v for k, v in vars(plan).items() if k != "prediction"}
        return replace(self, **chosen)


def random_setting(rng: np.random.Generator) -> Setting:
    """Return any setting: sizes and cutoff are not tuned to the rest."""
    n = _log_uniform(rng, 1000, 20_000)
    n_train = round(n * rng.uniform(0.1, 0.6))
    world, prior = _task(rng, int(rng.integers(2, 9)))
    return Setting(
        world,
        prior,
        epsilon=_log_uniform(rng, 0.5, 10),
        n_train=n_train,
        n_vote=round(n) - n_train,
        n_per_learner=round(_log_uniform(rng, 25, min(n_train * 0.8, 1500))),
        n_learners=round(_log_uniform(rng, 5, 100)),
        cutoff=rng.uniform(0.5, 0.9),
    )


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _task(rng: np.random.Generator, d: int) -> tuple[World, UtilityPrior]:
    while True:
        direction = rng.standard_normal(d)
        spread, depth = rng.uniform(0.15, 0.35), rng.uniform(0.6, 1.9)
        world = World(
            shape=str(rng.choice(["normal", "uniform", "logistic"])),
            direction=direction * depth * spread / np.linalg.norm(direction),
            centre=rng.uniform(-0.1, 0.1, d),
            spread=spread,
            positive=rng.uniform(0.35, 0.65),
        )
        prior = world.prior(rng)
        if BEST[0] <= prior.best <= BEST[1]:
            return world, prior


def simulated(setting: Setting, seed: int, precision: float = PRECISION) -> Array:
    """Return the accuracies of as many runs as the ``precision`` of the mean takes."""
    rng = np.random.default_rng(seed)
    z, labels = setting.world.clients(rng, FRESH)
    found: list[float] = []
    while len(found) < MOST:
        rules = [one_run(setting, rng) for _ in range(BATCH)]
        coef, intercept = (np.array(part) for part in zip(*rules, strict=True))
        right = (z @ coef.T + intercept > 0) == (labels[:, None] > 0)
        found += right.mean(axis=0).tolist()
        if np.std(found) < precision * np.sqrt(len(found)):
            break
    return np.array(found)


def one_run(s: Setting, rng: np.random.Generator) -> tuple[Array, float]:
    """Return the final classifier of one run of the protocol."""
    entropy = SeededEntropy(int(rng.integers(2**62)))
    reporter = Reporter.build(s.d, s.epsilon, "laplace", "equal")
    reports = s.world.clients(rng, s.n_train)
    z, labels = reporter.release(*reports, entropy, entropy, study=True)
    rows = draw_subsets(rng, s.n_train, s.n_learners, s.n_per_learner)
    fits = learners.fit("centroid", z[rows], labels[rows])
    z, labels = s.world.clients(rng, s.n_vote)
    judges = rng.permutation(np.arange(s.n_vote) % s.n_learners)
    decided = candidate_scores(z, fits.coef, fits.intercept, judges)
    right = draw_votes(decided, labels, s.epsilon, entropy)
    n = np.bincount(judges, minlength=s.n_learners)
    positive = np.bincount(judges, weights=right, minlength=s.n_learners)
    utility = estimate_utility(positive, n, BinaryRR(epsilon=s.epsilon).keep)
    flipped = reversal_mask(positive, n)
    weight, _ = averaging_weights(
        reversed_utility(utility.value, flipped), s.cutoff, "soft"
    )
    return average_classifiers(
        fits.coef, fits.intercept, np.where(flipped, -weight, weight)
    )


def compared(settings: Iterator[Setting], title: str) -> float:
    """Print a line a setting, return the largest difference of mean accuracy."""
    print(
        f"{title}\n     N  d epsilon  best shape    n_train    n0    B    r0"
        "   predicted       simulated      difference"
    )
    worst = 0.0
    for index, s in enumerate(settings):
        told, found = s.predicted(), 100 * simulated(s, index)
        difference = 100 * told.accuracy - found.mean()
        worst = max(worst, abs(difference))
        print(
            f"{s.n_train + s.n_vote:6d} {s.d:2d} {s.epsilon:7.2f}  {s.prior.best:.2f}"
            f" {s.world.shape:8s} {s.n_train:7d} {s.n_per_learner:5d}"
            f" {s.n_learners:4d}  {s.cutoff:.2f}"
            f"   {100 * told.accuracy:5.2f} ({100 * told.spread:5.2f})"
            f"   {found.mean():5.2f} ({found.std():5.2f})"
            f"   {difference:+5.2f} ± {found.std() / np.sqrt(len(found)):.2f}",
            flush=True,
        )
    print(f"largest difference {worst:.2f} points; in brackets: run to run\n")
    return worst / 100


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=20)
    parser.add_argument("--recommended", type=int, default=4)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)

    def some(count: int) -> Iterator[Setting]:
        return (random_setting(rng) for _ in range(count))

    worst = compared(some(given.random), "random sizes")
    best = (setting.recommended() for setting in some(given.recommended))
    worst = max(worst, compared(best, "recommended sizes"))
    what = "largest difference"
    return record("planner", {}, sizes={what: worst}, bounds={what: TOLERANCE})


if __name__ == "__main__":
    sys.exit(main())
