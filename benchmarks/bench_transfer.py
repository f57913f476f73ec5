"""One release of a million records and 1e5 queries of the model, by form.

Targets: `cells` within 60 s of processor time and 1.5 GiB of memory for the whole
process, `moments` within 10 s, and both linear from 250,000 records on: at most 1.5
times the processor time a record.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from benchmarks.history import record
from curvote.base.entropy import SystemEntropy
from curvote.systems.transfer.method.model import combine
from curvote.systems.transfer.method.release import release
from curvote.systems.transfer.method.task import Task

D, QUERIES, SIZES = 7, 100_000, (250_000, 1_000_000)
SECONDS = {"cells": 60, "moments": 10}
GIB, LINEAR = 1.5, 1.5


def measure(form: str, n: int) -> float:
    """Return the processor time of two servers' releases and of all queries."""
    rng = np.random.default_rng(n)
    X = rng.random((n, D))
    y = (X.sum(axis=1) + rng.normal(0, 0.5, n) > D / 2).astype(int)
    features = [(f"x{k}", 0, 1) for k in range(D)]
    task = Task(features, ("0", "1"), {"a": 1.0, "b": 1.0}, form)
    start = time.process_time()
    told = [release(task, name, X, y, SystemEntropy()) for name in task.servers]
    released = time.process_time() - start
    said = combine(task, told, "a").predict(X[:QUERIES])
    seconds = time.process_time() - start
    right = (said == y[:QUERIES].astype(str)).mean()
    print(
        f"{form:>8} {n:>9} records, 2 servers: {released:6.1f} s to release,"
        f" {seconds - released:5.1f} s for {QUERIES} queries, {right:.1%} right"
    )
    return seconds


def main() -> int:
    growths, sizes = {}, {}
    for form in SECONDS:
        small, large = (measure(form, n) for n in SIZES)
        growths[f"{form}: growth"] = (large / SIZES[1]) / (small / SIZES[0])
        sizes[f"{form}: s"] = large
    sizes["GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    bounds = dict.fromkeys(growths, LINEAR) | {"GiB": GIB}
    bounds |= {f"{form}: s": most for form, most in SECONDS.items()}
    return record("transfer", growths, sizes=sizes, bounds=bounds)


if __name__ == "__main__":
    sys.exit(main())
