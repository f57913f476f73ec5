"""What a vote about several classes had best be about: three kinds of candidates.

Run with ``python -m benchmarks.bench_questions [--runs R]``. N = 10,000 clients of
`simulated-classes` with d = 8 numbers vote once about one of 2,000 random candidates: a
direction and a split of the classes into halves (`halving_code`, what `votes` asks), a
direction and one class against the rest (`rest`), or a random line for each class, of
which the largest must be right (`lines`). Every candidate weighs as much as its utility
exceeds chance. Errors on 4,000 others, in percent.

Fails where splits err more than one point more than the best of the others.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from benchmarks.history import record
from curvote.data.simulation.records import CLASSES, ClassesParameters
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.systems.common.questions import (
    answer_questions,
    halving_code,
    one_against_rest_code,
)

Array = NDArray[np.float64]
N, TESTED, D, B, SCALE = 10_000, 4_000, 8, 2_000, 3.0
# How far apart the classes are, by their number: it must be possible to err.
DISTANCES = {3: 3.0, 5: 4.5, 10: 6.3}
# The constant beside the numbers, as `direct` and `votes` have it.
BESIDE = 0.64
MORE = 1.0


def main() -> int:
    """Print a row for each number of classes and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=12)
    runs = parser.parse_args().runs
    print(f"{'K':>3} {'epsilon':>8} {'splits':>7} {'rest':>7} {'lines':>7}")
    worst = 0.0
    for n_classes in DISTANCES:
        for epsilon in (1.0, 2.0, 5.0):
            each = [errors(n_classes, epsilon, seed) for seed in range(runs)]
            own, *others = 100 * np.mean(each, axis=0)
            numbers = " ".join(f"{value:7.1f}" for value in (own, *others))
            print(f"{n_classes:3d} {epsilon:8g} {numbers}", flush=True)
            worst = max(worst, own - min(others))
    what = "points that splits lose at most"
    return record("questions", {}, sizes={what: float(worst)}, bounds={what: MORE})


def errors(n_classes: int, epsilon: float, seed: int) -> tuple[float, float, float]:
    """Return the errors of splits, of one against the rest, and of lines."""
    rng = np.random.default_rng([seed, n_classes])
    law = ClassesParameters(n_classes=n_classes, d=D, distance=DISTANCES[n_classes])
    drawn = CLASSES.clients(law, N + TESTED, rng)
    z = np.tanh(drawn["curve"] / SCALE)
    u, labels = np.column_stack([np.full(len(z), BESIDE), z]), drawn["label"]
    codes = halving_code(n_classes), one_against_rest_code(n_classes)
    made = [asked(code, u[:N], labels[:N], epsilon, rng) for code in codes]
    made.append(lines(n_classes, u[:N], labels[:N], epsilon, rng))
    wrong = [float(np.mean((u[N:] @ w.T).argmax(1) != labels[N:])) for w in made]
    return wrong[0], wrong[1], wrong[2]


def asked(
    code: Array, u: Array, labels: Array, epsilon: float, rng: np.random.Generator
) -> Array:
    """Return scores (K, p) from directions that answer the questions of a code."""
    w = rng.standard_normal((B, u.shape[1]))
    judge = rng.permutation(np.arange(len(u)) % B)
    told = np.where((u * w[judge]).sum(axis=1) > 0, 1.0, -1.0)
    right = told == answer_questions(code, judge, labels)
    worth = utility(right, judge, epsilon, rng) - 0.5
    return np.asarray((worth[:, None] * code[np.arange(B) % len(code)]).T @ w)


def lines(
    n_classes: int, u: Array, labels: Array, epsilon: float, rng: np.random.Generator
) -> Array:
    """Return scores (K, p) from candidates that are such scores themselves."""
    w = rng.standard_normal((B, n_classes, u.shape[1]))
    judge = rng.permutation(np.arange(len(u)) % B)
    right = np.einsum("np,nkp->nk", u, w[judge]).argmax(axis=1) == labels
    worth = utility(right, judge, epsilon, rng) - 1 / n_classes
    return np.asarray(np.tensordot(worth, w, 1))


def utility(
    right: NDArray[np.bool_],
    judge: NDArray[np.int64],
    epsilon: float,
    rng: np.random.Generator,
) -> Array:
    """Return how often each candidate is right, estimated from noised bits."""
    keep = BinaryRR(epsilon=epsilon).keep
    told = right ^ (rng.random(len(right)) > keep)
    share = np.bincount(judge, told, B) / np.bincount(judge, minlength=B)
    return np.asarray((share + keep - 1) / (2 * keep - 1))


if __name__ == "__main__":
    sys.exit(main())
