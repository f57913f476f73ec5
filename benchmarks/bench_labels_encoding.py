"""Encode a million labels on operating-system entropy, beside other libraries.

Targets, in processor time: subset selection of 100 classes within 2 s and at most 5
times `vector` in the same run; of 1000 classes within 12 s and 400 MiB of memory for
the whole process. Other libraries encode fewer labels, scaled to a million; one that is
not installed, or has no such encoder, is left out (`competitors/`).
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from bench_samplers import ask, competitors
from competitors.clock import CLASSES, EPSILON

from benchmarks.history import record
from curvote.systems.labels.codes.encoding import encode

N, MANY = 1_000_000, 1000
# The tasks of other libraries that are encoders of as many classes.
TASKS = ("subset selection", "unary symmetric", "unary optimised")
ENCODERS = (
    "subset_selection",
    "unary_symmetric",
    "unary_optimised",
    "k_rr",
    "hadamard",
    "alibi",
)
SECONDS, SECONDS_MANY, MIB, TIMES = 2, 12, 400, 5


def measure(encoder: str, n_classes: int = CLASSES, n: int = N) -> float:
    """Return the processor time of encoding a million labels."""
    labels = np.random.default_rng(n_classes).integers(n_classes, size=n)
    start = time.process_time()
    codes = encode(labels, np.arange(n_classes), EPSILON, encoder)
    seconds = (time.process_time() - start) * N / n
    print(
        f"{'curvote':>16} {encoder:<24} {n_classes:>5} classes: {seconds:7.2f} s,"
        f" {codes.nbytes / n:6.1f} bytes a label, exact, OS"
    )
    return seconds


def others() -> None:
    """Print what other libraries take for the same encoders."""
    rows = [row for name in competitors() for row in ask(name)]
    for row in rows:
        if row.task in TASKS:
            seconds = row.seconds * N / row.n
            exact = "exact" if row.exact else "not exact"
            print(
                f"{row.library:>16} {row.call:<24} {CLASSES:>5} classes:"
                f" {seconds:7.2f} s, {exact}, {row.entropy}"
            )


def main() -> int:
    print(f"{N:,} labels at epsilon {EPSILON:g}, processor time")
    encode(np.arange(CLASSES), encoder="subset_selection")  # what is loaded once
    memory = measure("subset_selection", MANY), _mib()
    # Noise on every number takes 15 times as long: fewer labels.
    taken = {
        name: measure(name, n=N // 20 if name == "alibi" else N) for name in ENCODERS
    }
    others()
    times = taken["subset_selection"] / taken["unary_symmetric"]
    few, seconds, mib = f"{CLASSES} classes, s", f"{MANY} classes, s", f"{MANY}, MiB"
    return record(
        "labels_encoding",
        {"times vector": times},
        sizes={few: taken["subset_selection"], seconds: memory[0], mib: memory[1]},
        bounds={few: SECONDS, "times vector": TIMES, seconds: SECONDS_MANY, mib: MIB},
    )


def _mib() -> float:
    """Return the largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


if __name__ == "__main__":
    sys.exit(main())
