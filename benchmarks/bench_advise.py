"""What `curvote advise` expects beside real reports, and how often its interval covers.

Run with ``python -m benchmarks.bench_advise [--laws K] [--runs R]``. Laws are those of
`benchmarks.laws.tuned`'s kinds whose label depends on one line, with parameters drawn
within what the interval is stated for (centres off by one deviation at most, logarithms
of deviation .8 at most, t of 3 degrees of freedom at least, correlations of .7 at
most), and binary numbers and mixtures, for which it is not. Real reports, the arm of
the public rule; the signal has the least error that a line can reach under the law.
Prints, for each kind, the share of runs within the interval, that above it, and by how
much the errors exceed the expected ones. Fails where less than 90 % of the runs of the
stated kinds are covered.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict

import numpy as np
from scipy.special import expit

from benchmarks.bench_rule import learnt
from benchmarks.history import record
from benchmarks.laws import RECORDS, Law
from curvote.advise.direct import error_range
from curvote.base.errors import UserError
from curvote.systems.direct.system import choose_protocol
from curvote.theory import Signal, expect_direct

STATED = {
    "normal": (0, 0),
    "shifted": (0.2, 1),
    "lognormal": (0.3, 0.8),
    "exponential": (0, 0.5),
    "student": (3, 6),
    "correlated": (0.1, 0.7),
    "common": (0.1, 0.5),
}
OTHERS = {"binary": (0.1, 0.5), "mixture": (0.5, 1.5), "uneven": (1.5, 3)}
COVERED, TEST, SEED = 0.9, 10_000, 11


def drawn(index: int) -> Law:
    rng, degrees = np.random.default_rng([SEED, index]), STATED | OTHERS
    records = list(degrees)[index % len(degrees)]
    epsilon = float(np.exp(rng.uniform(np.log(0.4), np.log(5))))
    size = np.exp(rng.uniform(np.log(250), np.log(3e4)))
    return Law(
        records,
        float(rng.uniform(*degrees[records])),
        str(rng.choice(["dense", "sparse"])),
        float(rng.choice([0.7, 1, 2, 4])),
        float(rng.choice([0.5, 0.5, 0.35, 0.7, 0.85])),
        int(np.clip(size / epsilon**2, 500, 10_000)),
        int(rng.integers(2, 13)),
        (epsilon,),
        (SEED, index, 1),
    )


def signal_of(law: Law, z: np.ndarray) -> Signal | None:
    """Return the signal whose best rule errs as often, None: there is none."""
    chance = expit(law.logit(z))
    best = float(np.minimum(chance, 1 - chance).mean())
    low, high = 0.001, 0.499
    for _ in range(30):
        middle = (low + high) / 2
        over = Signal(middle, law.positive).best > best
        low, high = (low, middle) if over else (middle, high)
    found = Signal((low + high) / 2, law.positive)
    return found if abs(found.best - best) < 0.003 else None


def measured(law: Law, runs: int) -> tuple[np.ndarray, float, tuple[float, float]]:
    """Return the errors of runs, what is expected, and its interval."""
    (epsilon,), rng = law.epsilons, np.random.default_rng([*law.seed, 3])
    z, labels = law.clients(rng, TEST)
    signal = signal_of(law, z)
    if signal is None:
        raise UserError("no signal of normal records is as strong.")
    told = expect_direct(law.n, law.d, epsilon, signal)
    ends = error_range(law.n, law.d, epsilon, signal, told)
    arm, errors = choose_protocol(law.n, law.d, epsilon).arm or "mean", []
    for _ in range(runs):
        clients, seed = law.clients(rng, law.n), int(rng.integers(2**62))
        coef, intercept = learnt(arm, (law.d, epsilon), clients, seed)
        errors.append(float(np.mean((z @ coef + intercept > 0) != (labels > 0))))
    return np.array(errors), told.error, ends


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--laws", type=int, default=100)
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    found = defaultdict(list)
    for index in range(given.laws):
        law = drawn(index)
        try:
            errors, told, (low, high) = measured(law, given.runs)
        except UserError:
            continue
        # A test set of so many errs by this much itself.
        room = 2 * 0.5 / TEST**0.5
        inside = (errors >= low - room) & (errors <= high + room)
        found[law.records].append(
            (inside.mean(), (errors > high + room).mean(), errors.mean() - told)
        )
    for kind in RECORDS:
        if found[kind]:
            inside, above, off = 100 * np.array(found[kind]).T
            print(
                f"{kind:12} {len(inside):3} laws: {inside.mean():5.1f} % inside,"
                f" {above.mean():4.1f} % above; {off.mean():+5.2f} points more than"
                f" expected ({np.abs(off).mean():.2f} off)"
            )
    stated = np.mean([row[0] for kind in STATED for row in found[kind]])
    what = "share of the stated kinds inside"
    return record("advise", {what: float(stated)}, least={what: COVERED})


if __name__ == "__main__":
    sys.exit(main())
