"""`curvote.falsify` on claims that hold, and on those of other libraries.

Run with ``python -m benchmarks.bench_falsify [--runs R]``. Of 84 claims that hold none
may be called violated: curvote's exact mechanisms at three epsilons, and discrete ones
of a few lines on generators of NumPy and Python. Other libraries are put to it in the
environments that ``make bench ONLY=samplers`` builds (`competitors/falsified.py`); one
that is not installed is named and left out. Fails at a false alarm, or where a fault
that its own project has admitted is not proved.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.history import ROOT, record
from curvote import SystemEntropy, falsify
from curvote.checks.mechanism_subject import build_subject
from curvote.mechanisms import names

LIBRARIES = ("rebuilt", "diffprivlib", "pure_ldp", "multi_freq_ldpy", "opendp")
# What was said of a library by its own project, or in print.
ADMITTED = ("Mironov", "issue 11)", "issue 105)", "4677")
EPSILONS = (0.4, 1.0, 3.0)
# Mechanisms of which a number is a class.
LABELS = ("binary_rr", "k_rr", "unary_symmetric", "unary_optimised", "unary", "alibi")
LABELS += ("subset_selection", "hadamard", "rr_with_prior")
Claim = tuple[str, Callable[..., Any], Any, float, float]


def exact(name: str, epsilon: float) -> Claim:
    subject, entropy = build_subject(name, epsilon), SystemEntropy()
    inputs: Any = subject.inputs(np.random.default_rng(0))
    if np.ndim(inputs[0]) == 0 and name not in LABELS:
        inputs = subject.mechanism.low, subject.mechanism.high

    def draw(x: Any, n: int) -> Any:
        return subject.draw(np.asarray(x), n, entropy)

    return f"{name} {epsilon}", draw, inputs, epsilon, subject.budget.delta


def geometric(epsilon: float) -> Callable[[int, int], Any]:
    rng = np.random.default_rng()
    rate = 1 - math.exp(-epsilon / 9)
    return lambda x, n: x + rng.geometric(rate, n) - rng.geometric(rate, n)


def response(epsilon: float, k: int) -> Callable[[int], int]:
    keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1)

    def answer(x: int) -> int:
        if random.random() < keep:
            return x
        return random.choice([i for i in range(k) if i != x])

    return answer


def document(epsilon: float) -> Callable[[float], str]:
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    chance = secrets.SystemRandom()

    def answer(x: float) -> str:
        bit = chance.random() < x
        return json.dumps({"bit": int(bit == (chance.random() < keep)), "n": 1})

    return answer


def choice(epsilon: float) -> Callable[[Any, int], Any]:
    rng = np.random.default_rng()

    def choose(table: Any, n: int) -> Any:
        counts = np.bincount(np.asarray(table), minlength=4)
        weights = np.exp(epsilon * counts / 2)
        return rng.choice(4, size=n, p=weights / weights.sum())

    return choose


def sound() -> Iterator[Claim]:
    for e in EPSILONS:
        yield from (exact(name, e) for name in names())
        yield f"geometric {e}", geometric(e), (0, 9), e, 0.0
        yield f"response {e}", response(e, 5), [0, 1, 2, 3, 4], e, 0.0
        yield f"document {e}", document(e), (0.0, 1.0), e, 0.0
        yield f"exponential {e}", choice(e), [[0, 1, 2], [0, 1, 3]], e, 0.0


def alarms(runs: int | None) -> tuple[list[str], float, list[float]]:
    """Return who was called violated, the longest seconds, and the shares proved."""
    called, longest, shares = [], 0.0, []
    for name, call, inputs, epsilon, delta in sound():
        start, claim = time.perf_counter(), {"epsilon": epsilon, "delta": delta}
        result = falsify(call, inputs, **claim, runs=runs)
        longest = max(longest, time.perf_counter() - start)
        shares.append(result.proved / epsilon)
        print(f"{name}: {result}", flush=True)
        if result.verdict == "violated":
            called.append(name)
    return called, longest, shares


def elsewhere(library: str) -> list[dict[str, Any]]:
    python = ROOT / f".venv-bench-{library}" / "bin" / "python"
    if not python.exists():
        python = sys.executable
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [python, "-W", "ignore", "-m", "competitors.falsified", library],
        cwd=ROOT / "benchmarks",
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{library}: left out: {done.stderr.strip().rpartition(chr(10))[2]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=None)
    given = parser.parse_args()
    called, longest, shares = alarms(given.runs)
    print(f"{len(called)} of {len(shares)} sound claims called violated: {called}")
    print(f"proved of what is true, median: {np.median(shares):.0%}")
    missed = 0
    for library in LIBRARIES:
        for case in elsewhere(library):
            admitted = any(word in case["name"] for word in ADMITTED)
            missed += admitted and case["verdict"] == "held"
            proof = f"{case['proved']:.2f} ({case['event']}; {case['runs']} runs)"
            print(f"{library}: {case['name']}: {case['verdict']}, {proof}")
    sizes = {"false alarms": float(len(called)), "missed": float(missed)}
    sizes |= {"seconds": longest, "proved": float(np.median(shares))}
    bounds = {"false alarms": 0.0, "missed": 0.0, "seconds": 45.0}
    return record("falsify", {}, sizes=sizes, bounds=bounds)


if __name__ == "__main__":
    sys.exit(main())
