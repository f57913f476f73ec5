"""What an outsider sees of one among n shuffled messages, by the law of the message.

Run with ``python -m benchmarks.bench_shuffle``. For n from 1e3 to 1e6 and
epsilon from .5 to 4, at the delta of a release, each law's epsilon' beside that of the
clones of 2021 (Feldman, McMillan & Talwar), which hold for any law and were all that
releases told before. Then what enumeration says: of n <= 2,000 randomized bits, and of
codes of three, the worst of some tables of the others; no bound may be below it.

Targets, said before the run: at most .8 of those clones in the mean, of codes of k and
of directions; never above them; never below enumeration; a second for one figure.
"""

from __future__ import annotations

import argparse
import math
import sys
from time import perf_counter

import numpy as np

from benchmarks.history import record
from curvote.base.accounting import (
    TruncatedGaussian,
    closed_form_bound,
    numerical_bound,
    shuffled_epsilon,
)
from curvote.base.blanket import Blanket
from curvote.mechanisms.frequency_oracles import SubsetSelection
from curvote.mechanisms.gaussian import Gaussian
from curvote.mechanisms.privunit import PrivUnit
from curvote.mechanisms.randomized_response import KRR
from curvote.messages.amplification import MAX_DELTA
from tests.test_shuffling import _least, _least_of_codes

SIZES, EPSILONS = (10**3, 10**4, 10**5, 10**6), (0.5, 1.0, 2.0, 4.0)
LAWS = {
    "bits": lambda e: KRR(epsilon=e, n_classes=2),
    "codes of 3": lambda e: KRR(epsilon=e, n_classes=3),
    "codes of 16": lambda e: KRR(epsilon=e, n_classes=16),
    "sets of 16": lambda e: SubsetSelection(epsilon=e, n_classes=16),
    "directions of 7": lambda e: PrivUnit(epsilon=e, d=7),
    "directions of 100": lambda e: PrivUnit(epsilon=e, d=100),
}


def first_clones(epsilon: float, n: int, delta: float) -> float:
    """Return what a release told before: 1/p of the others are clones."""
    given = epsilon, n, delta
    share = math.exp(-epsilon)
    return min(epsilon, closed_form_bound(*given), numerical_bound(*given, share))


def table(name: str) -> tuple[list[float], list[float]]:
    """Print a law's table; return its ratios to the first clones, and seconds."""
    ratios, seconds = [], []
    for n in SIZES:
        line, delta = [], min(MAX_DELTA, 1 / (10 * n))
        for epsilon in EPSILONS:
            blanket: Blanket = LAWS[name](epsilon).blanket()
            start = perf_counter()
            told = shuffled_epsilon(epsilon, n, delta, blanket)
            seconds.append(perf_counter() - start)
            before = first_clones(epsilon, n, delta)
            ratios.append(told / before)
            line.append(f"{told:.4g} ({told / before:.2f})")
        print(f"{name} n {n:,}: {', '.join(line)}", flush=True)
    return ratios, seconds


def least_margin() -> float:
    """Return the least of bound/enumeration, of bits and of codes of three."""
    margins = []
    for n in (2, 60, 500, 2000):
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            bits = KRR(epsilon=epsilon, n_classes=2).blanket()
            told = shuffled_epsilon(epsilon, n, 1e-6, bits)
            margins.append(told / _least(epsilon, n, 1e-6))
    for n in (2, 40, 300, 2000):
        for epsilon in (0.5, 1.0, 2.0):
            codes = KRR(epsilon=epsilon, n_classes=3)
            told = shuffled_epsilon(epsilon, n, 1e-5, codes.blanket())
            margins.append(told / _least_of_codes(codes, n, 1e-5))
    print(f"bound over enumeration: {min(margins):.4f} to {max(margins):.3f}")
    return min(margins)


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    means, worst, seconds = {}, 0.0, [0.0]
    for name in LAWS:
        ratios, took = table(name)
        means[name], worst = float(np.mean(ratios)), max(worst, *ratios)
        seconds += took[1:]  # the first one imports
        print(f"{name}: {means[name]:.3f} of the first clones in the mean")
    for d in (1, 5, 40):
        told = [
            TruncatedGaussian(0.0, noise.sigma, math.sqrt(d), d).epsilon(n, 1e-7, 1.0)
            for n in SIZES
            for noise in [Gaussian(epsilon=1.0, d=d, delta=1e-6)]
        ]
        words = ", ".join(f"{one:.3g}" for one in told)
        print(f"Gaussian numbers d {d}, epsilon 1, n as above: {words} (before: none)")
    # Enumeration is bisected to 2^-22 of epsilon.
    sizes = {"worst ratio": worst, "seconds": max(seconds)}
    sizes["least over enumeration"] = least_margin()
    bounds = dict.fromkeys(means, 0.8) | {"worst ratio": 1.0, "seconds": 1.0}
    least = {"least over enumeration": 1 - 1e-5}
    return record("shuffle", means, sizes=sizes, bounds=bounds, least=least)


if __name__ == "__main__":
    sys.exit(main())
