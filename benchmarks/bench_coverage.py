"""How often the interval of a score from codes alone holds the model's true score.

Run with ``python -m benchmarks.bench_coverage [--runs R]``. A model that is
right about a stated share of all records (or of each class's) is scored by new codes,
1,000 times a setting. Fails where an interval covers less than 925 times of 1,000, or
where balanced accuracy is off by more than 3 standard errors, both only if every class
has more records than noise hides; and if one setting in ten is off by 2 (chance alone:
one in twenty).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.history import record
from curvote.labels import Codes, encode, private_score
from curvote.systems.labels.codes.encoders import best_encoder, build_encoder

Array = NDArray[np.float64]

CLASSES, EPSILONS = (2, 3, 5, 10), (0.5, 1.0, 2.0, 5.0, 8.0)
SIZES, ACCURACIES = (30, 200, 2_000), (0.6, 0.8, 0.95, 0.99)
LEAST = 0.925
# Unequal classes, the rarest a quarter as often as the commonest, recognised less.
RAREST, RECALLS = 0.25, (0.9, 0.6)
UNEQUAL_SIZES = (300, 1_000, 3_000)
# A class of a share below so many standard errors hides behind the noise.
VISIBLE = 1.5


@dataclass(frozen=True)
class World:
    """Labels of ``shares`` (K,) with their codes: enough for all runs of a size."""

    shares: Array
    epsilon: float
    runs: int
    most: int

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        rng = np.random.default_rng([2, len(self.shares), round(8 * self.epsilon)])
        return rng.choice(len(self.shares), self.runs * self.most, p=self.shares)

    @cached_property
    def codes(self) -> Codes:
        classes = np.arange(len(self.shares))
        return encode(self.labels, classes, self.epsilon, random_state=2)

    def row(self, n: int, recalls: Array, scoring: str) -> tuple[float, float, float]:
        """Return cover, bias and its standard error for a model of these recalls."""
        k = len(self.shares)
        y, rng = self.labels, np.random.default_rng([k, n, round(1e4 * recalls.sum())])
        right = rng.random(len(y)) < recalls[y]
        said = np.where(right, y, (y + rng.integers(1, k, size=len(y))) % k)
        # As sure of every class: a reweighted model, which knows no shares.
        sure = 0.7 * np.eye(k) + 0.3 / k
        told = []
        for run in range(self.runs):
            rows = slice(run * n, (run + 1) * n)
            told.append(
                private_score(sure[said[rows]], None, self.codes[rows], scoring)
            )
        value, _, low, high = np.array(told).T
        by = self.shares if scoring == "accuracy" else np.full(k, 1 / k)
        true = float(recalls @ by)
        off = value - true
        cover = float(np.mean((low <= true) & (true <= high)))
        return cover, float(off.mean()), float(off.std() / np.sqrt(self.runs))

    def hides_rarest(self, n: int) -> bool:
        """Return whether n codes do not tell the rarest class from one nobody has."""
        k, share = len(self.shares), self.shares[-1]
        law = build_encoder(best_encoder(k, self.epsilon), k, self.epsilon)
        noise = law.variance(np.array([0]))[0, -1]
        return bool(share < VISIBLE * np.sqrt((noise + share) / n))


def settings(runs: int) -> Iterator[tuple[str, float, float, float]]:
    """Yield the name, cover, bias and its standard error of each setting."""
    for k, epsilon in product(CLASSES, EPSILONS):
        world = World(np.full(k, 1 / k), epsilon, runs, max(SIZES))
        for n, accuracy in product(SIZES, ACCURACIES):
            name = f"accuracy: K {k} epsilon {epsilon:g} n {n} accuracy {accuracy:g}"
            yield name, *world.row(n, np.full(k, accuracy), "accuracy")
    for k, epsilon in product(CLASSES[1:], EPSILONS[1:]):
        shares = np.geomspace(1, RAREST, k)
        world = World(shares / shares.sum(), epsilon, runs, max(UNEQUAL_SIZES))
        for n in UNEQUAL_SIZES:
            hidden = " (hidden)" * world.hides_rarest(n)
            name = f"balanced{hidden}: K {k} epsilon {epsilon:g} n {n}"
            yield name, *world.row(n, np.linspace(*RECALLS, k), "balanced_accuracy")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    given = parser.parse_args()
    rows = []
    for name, cover, bias, se in settings(given.runs):
        print(f"{name}: covers {cover:.3f}, off {bias:+.4f} ± {se:.4f}", flush=True)
        rows.append((name, cover, abs(bias) / se))
    balanced = [row for row in rows if row[0].startswith("balanced:")]
    least = {
        kind: min(cover for name, cover, _ in rows if name.startswith(kind))
        for kind in ("accuracy:", "balanced:")
    }
    over = sum(steps > 2 for *_, steps in balanced)
    worst = max(steps for *_, steps in balanced)
    print(f"least cover {least}; of {len(balanced)} balanced scores {over} are off by")
    print(f"more than 2 standard errors, the worst by {worst:.1f}")
    record(
        "coverage", {}, sizes={f"least cover, {k[:-1]}": v for k, v in least.items()}
    )
    fine = min(least.values()) >= LEAST and worst <= 3 and 10 * over <= len(balanced)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
