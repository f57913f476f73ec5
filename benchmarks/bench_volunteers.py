"""Fifty labelled volunteers, reports, and both joined.

Run with ``python -m benchmarks.bench_volunteers [--runs R] [--volunteers V]``. The laws
are `benchmarks.laws.JUDGED` with their N, d and epsilons, and with two small epsilons
more. Reports come from N clients, volunteers beside them. A cell is a law at an
epsilon, an error the mean over runs on new records. Fails where the join is worse than
the volunteers alone by more than two points in a cell (one is, by 2.7), or worse than
the better of volunteers and reports by more than a quarter of a point on average.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks.history import record
from benchmarks.laws import JUDGED, Law
from curvote.base.entropy import SeededEntropy
from curvote.client.report import DirectionReporter
from curvote.learning.directions import Line, ReportMean, one_round_classifier
from curvote.learning.volunteers import (
    VolunteerRecords,
    joint_classifier,
    ridge_logistic,
)
from curvote.messages.arms import make_directions
from curvote.systems.direct.system import choose_protocol, joined_arm

WORSE, MOST_REGRET = 0.02, 0.0025
SMALL = (0.05, 0.25)
TEST = 10_000
NAMES = ("volunteers", "reports", "joined")


def lines(
    law: Law, epsilon: float, rng: np.random.Generator, volunteers: int
) -> list[Line]:
    """Return the classifiers of volunteers, of reports, and of both."""
    choice = choose_protocol(law.n, law.d, epsilon, of_direct=True)
    arm = joined_arm(choice.arm) or "mean"
    given = make_directions(arm, law.d, "standard", "auto")
    reporter = DirectionReporter.build(given, epsilon)
    noise = SeededEntropy(int(rng.integers(2**62)))
    total = ReportMean.from_reports(
        reporter.release(*law.clients(rng, law.n), noise, study=True)
    )
    z, signs = law.clients(rng, volunteers)
    places = (signs > 0).astype(np.int64)
    public = VolunteerRecords.from_records(given, z, places)
    both = joint_classifier(total, given, epsilon, public)
    return [
        ridge_logistic(z, places),
        one_round_classifier(total, given, epsilon),
        both,
    ]


def errors(law: Law, epsilon: float, runs: int, volunteers: int) -> list[float]:
    """Return the mean errors of a cell, in the order of ``NAMES``."""
    rng = np.random.default_rng([*law.seed, round(1000 * epsilon), volunteers])
    z, labels = law.clients(rng, TEST)
    found = [
        [
            float(np.mean((z @ coef + constant > 0) != (labels > 0)))
            for coef, constant in lines(law, epsilon, rng, volunteers)
        ]
        for _ in range(runs)
    ]
    return [float(each) for each in np.mean(found, axis=0)]


def main() -> None:
    """Print every cell, then what the join loses and wins."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--volunteers", type=int, default=50)
    given = parser.parse_args()
    print(f"{'law':52} {'epsilon':>7} " + " ".join(f"{n:>10}" for n in NAMES))
    cells = []
    for law in JUDGED:
        for epsilon in (*SMALL, *law.epsilons):
            cells.append(errors(law, epsilon, given.runs, given.volunteers))
            told = " ".join(f"{100 * error:10.1f}" for error in cells[-1])
            print(f"{law.name:52} {epsilon:7g} {told}", flush=True)
    own, reports, both = np.array(cells).T
    beyond, regret = (both - own).max(), (both - np.minimum(own, reports)).mean()
    alone, better = "worst against the volunteers", "mean against the better part"
    sizes = {alone: float(beyond), better: float(regret)}
    bounds = {alone: WORSE, better: MOST_REGRET}
    sys.exit(record("volunteers", {}, sizes=sizes, bounds=bounds))


if __name__ == "__main__":
    main()
