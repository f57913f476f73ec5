"""The rule of `auto` on settings drawn at random: what it loses to the best arm.

Run with ``python -m benchmarks.bench_rule [--seed S] [--settings K] [--runs R]``. A
setting is a slope beta of the simulated curves (decaying, flat or sparse, alpha0 in
[-1, 1]), d of 4 to 12, N of 1e3 to 1e5 and epsilon of .5 to 5. Every arm decodes real
reports of the same clients; the regret is the rule's mean error less the least mean
error of the three arms, which chance makes look better than it is. Fails where the
mean regret is above .6 points.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.history import record
from curvote.base.entropy import SeededEntropy
from curvote.client.report import DirectionReporter
from curvote.curves.basis import Projection, orthonormal, projection
from curvote.data.simulation import simulated
from curvote.learning.directions import (
    Line,
    ReportMean,
    estimate_whitening,
    one_round_classifier,
    two_round_classifier,
)
from curvote.messages.arms import FIRST_ROUND_SHARE, make_directions
from curvote.systems.direct.system import choose_protocol

Array = NDArray[np.float64]
Clients = tuple[Array, Array]

MOST_REGRET = 0.006
ARMS = ("mean", "joint", "two")  # of two classes
TEST, POINTS = 20_000, 60
GRID = np.linspace(0, 1, POINTS)


@dataclass(frozen=True, eq=False)
class Setting:
    kind: str
    beta: Array
    intercept: float
    d: int
    n: int
    epsilon: float

    @property
    def onto(self) -> Projection:
        return orthonormal(projection("bspline", self.d, GRID))

    def clients(self, rng: np.random.Generator, n: int, onto: Projection) -> Clients:
        curves, labels = simulated.generate(
            rng, n, POINTS, self.beta, intercept=self.intercept
        )
        # The published law of the curves: its first d numbers, 1/j each.
        scale = np.sqrt((1 / np.arange(1, self.d + 1) ** 2).mean())
        return onto.apply(curves) / scale, np.where(labels == 1, 1.0, -1.0)


def drawn(rng: np.random.Generator) -> Setting:
    d, j = int(rng.integers(4, 13)), np.arange(1, 51)
    kind = str(rng.choice(["decaying", "flat", "sparse"]))
    beta = np.zeros(50)
    if kind == "decaying":
        beta = rng.choice([-1, 1], 50) * 8 / j ** rng.uniform(0.5, 2)
    elif kind == "flat":
        beta[:d] = rng.normal(size=d) * rng.uniform(3, 10)
    else:
        beta[rng.integers(0, min(d, 6), 2)] = 8 * rng.normal(size=2)
    n = int(np.exp(rng.uniform(np.log(1e3), np.log(1e5))))
    epsilon = float(np.exp(rng.uniform(np.log(0.5), np.log(5))))
    return Setting(kind, beta, float(rng.uniform(-1, 1)), d, n, epsilon)


def learnt(arm: str, size: tuple[int, float], clients: Clients, seed: int) -> Line:
    """Return the classifier of one arm from real reports; ``size`` is d, epsilon."""
    given, epsilon = make_directions(arm, size[0], "standard", "auto"), size[1]
    entropy, (z, labels) = SeededEntropy(seed), clients
    first = DirectionReporter.build(given, epsilon)
    if arm != "two":
        sent = first.release(z, labels, entropy, study=True)
        return one_round_classifier(ReportMean.from_reports(sent), given, epsilon)
    k = round(FIRST_ROUND_SHARE * len(z))
    one = ReportMean.from_reports(first.release(z[:k], labels[:k], entropy, study=True))
    made = estimate_whitening(one, given, epsilon)
    again = DirectionReporter.build(given.whitened, epsilon)
    two = again.release(made.apply(z[k:]), labels[k:], entropy, study=True)
    means = one, ReportMean.from_reports(two)
    return two_round_classifier(means, made, given, epsilon)


def errors(setting: Setting, runs: int, seed: int) -> dict[str, float]:
    """Return the mean error of every arm, and of the majority."""
    onto, rng = setting.onto, np.random.default_rng(seed)
    size = setting.d, setting.epsilon
    z, labels = setting.clients(rng, TEST, onto)
    found: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for run in range(runs):
        clients = setting.clients(rng, setting.n, onto)
        for arm, mine in found.items():
            coef, intercept = learnt(arm, size, clients, 1000 * seed + run)
            told = np.where(z @ coef + intercept > 0, 1.0, -1.0)
            mine.append(float(np.mean(told != labels)))
    constant = float(min(np.mean(labels > 0), np.mean(labels < 0)))
    return {arm: float(np.mean(mine)) for arm, mine in found.items()} | {
        "majority": constant
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", type=int, default=30)
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    regrets = []
    for index in range(given.settings):
        setting = drawn(np.random.default_rng([given.seed, index]))
        size = setting.n, setting.d, setting.epsilon
        choice = choose_protocol(*size, of_direct=True)
        found = errors(setting, given.runs, index)
        best = min(found[arm] for arm in ARMS)
        regrets.append(found[str(choice.arm)] - best)
        arms = " ".join(f"{arm} {100 * error:5.1f}" for arm, error in found.items())
        print(
            f"{setting.kind:9} N {setting.n:6} d {setting.d:2} epsilon"
            f" {setting.epsilon:4.2f} noise {choice.noise:.5f} {arms} | {choice.arm}"
            f" loses {100 * regrets[-1]:.2f}",
            flush=True,
        )
    mean, worst = float(np.mean(regrets)), max(regrets)
    print(f"mean regret {100 * mean:.2f} points, worst {100 * worst:.2f}")
    sizes = {"mean regret": mean, "worst regret": worst}
    return record("rule", {}, sizes=sizes, bounds={"mean regret": MOST_REGRET})


if __name__ == "__main__":
    sys.exit(main())
