"""How honest scores from codes are: bias and coverage, and how far a search boasts.

Run with ``python -m benchmarks.labels_honest [--seed S] [--runs R] [--searches R]``.
Part one scores a known model of the circle (VEC section 5.1) on 2,000 new records, and
compares with the score of their true labels and with that of all records there could
be. Part two lets `PrivateSearchCV` choose among 24 values of k on 2,000 records of 16
classes at epsilon .5. Fails where a mean is off by more than 3 standard errors
(balanced accuracy: 1 point) or an interval covers less than 180 or more than 198 times
of 200.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, log_loss

from curvote.data.simulation import records
from curvote.labels import PrivateLabelClassifier, PrivateSearchCV, encode
from curvote.systems.labels.learners.knn import KNN
from curvote.systems.labels.method.scoring import private_score

Array = NDArray[np.float64]

N, ALL = 2_000, 200_000
CLASSES, EPSILONS = (2, 10, 100), (0.5, 1.0)
LINEAR, BALANCED = ("accuracy", "brier", "log_loss"), "balanced_accuracy"
COVERED = (0.9, 0.99)
MOST_BALANCED = 0.01
SEARCH_CLASSES, SEARCH_EPSILON = 16, 0.5
NEIGHBOURS = np.unique(np.geomspace(5, 400, 24).round())


@dataclass(frozen=True)
class World:
    """A circle of K classes, and a model that thinks it half as wide again."""

    k: int

    def records(self, n: int, seed: list[int]) -> tuple[Array, NDArray[np.int64]]:
        rng = np.random.default_rng(seed)
        made = records.CIRCLE.clients(
            records.CIRCLE.Parameters(n_classes=self.k), n, rng
        )
        return made["curve"], made["label"].astype(np.int64)

    def model(self, x: Array) -> Array:
        wide = records.CIRCLE.Parameters(n_classes=self.k, sigma=3 / self.k)
        return records.CIRCLE.eta(wide, x)


def clean(scoring: str, proba: Array, y: NDArray[np.int64]) -> float:
    k = proba.shape[1]
    if scoring == "accuracy":
        return float(np.mean(proba.argmax(axis=1) == y))
    if scoring == BALANCED:
        return float(balanced_accuracy_score(y, proba.argmax(axis=1)))
    if scoring == "brier":
        return float(np.mean(np.sum((proba - np.eye(k)[y]) ** 2, axis=1)))
    return float(log_loss(y, proba, labels=np.arange(k)))


def scored(
    world: World, epsilon: float, scoring: str, seed: list[int]
) -> tuple[float, float, float, float]:
    """Return the score, its clean value, and the ends of its interval."""
    x, y = world.records(N, seed)
    proba = world.model(x)
    noise = int(np.random.default_rng([*seed, 1]).integers(2**31))
    codes = encode(y, np.arange(world.k), epsilon, random_state=noise)
    told = private_score(proba, None, codes, scoring)
    return told.value, clean(scoring, proba, y), told.low, told.high


def part_one(seed: int, runs: int) -> list[str]:
    """Print a line for each setting, and return what is wrong."""
    print("K epsilon score: clean mean, off, se, covered")
    wrong = []
    for k, epsilon in product(CLASSES, EPSILONS):
        world = World(k)
        x, y = world.records(ALL, [seed, k])
        truth = world.model(x)
        for scoring in (*LINEAR, *[BALANCED] * (k < 100)):
            keys = [[seed, k, int(10 * epsilon), run] for run in range(runs)]
            told = np.array([scored(world, epsilon, scoring, key) for key in keys])
            wrong += line(f"{k} {epsilon:g} {scoring}", told, clean(scoring, truth, y))
    return wrong


def line(name: str, told: Array, truth: float) -> list[str]:
    off = told[:, 0] - told[:, 1]
    mean, se = float(off.mean()), float(off.std() / np.sqrt(len(off)))
    covered = float(np.mean((told[:, 2] <= truth) & (truth <= told[:, 3])))
    print(f"{name}: {told[:, 1].mean():.4f} {mean:+.4f} {se:.4f} {covered:.3f}")
    most = MOST_BALANCED if name.endswith(BALANCED) else 3 * se
    bad = abs(mean) > most or not COVERED[0] <= covered <= COVERED[1]
    return [name] if bad else []


def part_two(seed: int, runs: int, scoring: str) -> list[str]:
    """Print what the search claims and what is true, and return what is wrong."""
    told = np.array([searched(scoring, [seed, run]) for run in range(runs)])
    claimed, honest, true = told.T
    off = honest - true
    mean, se = float(off.mean()), float(off.std() / np.sqrt(runs))
    print(
        f"search by {scoring}: largest accuracy in cv_results_ {claimed.mean():.4f},"
        f" best_score_ {honest.mean():.4f}, true {true.mean():.4f};"
        f" best_score_ off {mean:+.4f} se {se:.4f},"
        f" the largest {(claimed - true).mean():+.4f}"
    )
    return [f"search by {scoring}"] if abs(mean) > 3 * se else []


def searched(scoring: str, seed: list[int]) -> tuple[float, float, float]:
    """Return the largest accuracy claimed, the honest one, and the true one."""
    world = World(SEARCH_CLASSES)
    x, y = world.records(N, seed)
    noise = int(np.random.default_rng([*seed, 1]).integers(2**31))
    codes = encode(y, np.arange(world.k), SEARCH_EPSILON, random_state=noise)
    base = PrivateLabelClassifier("knn", SEARCH_EPSILON)
    grid = {"estimator": [KNN(int(k)) for k in NEIGHBOURS]}
    search = PrivateSearchCV(base, grid, scoring=scoring, random_state=noise)
    search.fit(x, codes)
    name = "accuracy" if scoring == "likelihood" else "score"
    claims = search.cv_results_[f"mean_test_{name}"]
    true = search.best_estimator_.score(*world.records(N, [*seed, 2]))
    return float(claims.max()), search.best_score_.value, float(true)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--searches", type=int, default=100)
    given = parser.parse_args()
    wrong = part_one(given.seed, given.runs)
    for scoring in ("accuracy", "likelihood"):
        wrong += part_two(given.seed, given.searches, scoring)
    print("wrong: " + "; ".join(wrong) if wrong else "as stated")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
