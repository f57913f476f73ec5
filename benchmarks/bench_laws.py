"""Protocol `auto` on 20 laws that were written down before it was run on any.

Run with ``python -m benchmarks.bench_laws [--runs R] [--tuned K]``. `auto` is all that
the protocol does: the public choice of `majority`, `votes` or an arm, and its decoder.
Beside it stand all of these on the same clients with the same noise. A cell is a law at
one of its epsilons, an error the mean over runs on records that are new.

How a law counts, said before the run: `auto` is **worse than the majority** on a law
if it is worse by more than a point in any of the law's cells. The **regret** of a cell
is the error of `auto` less the least of the arms, `votes` and `majority`, which
chance makes look better than it is; the mean is over all cells. Fails where `auto` is
worse on a law of equal classes, or on more than one of all, or where the mean regret
is above .6 points.

``--tuned K`` runs K laws of the other set instead, on which constants are chosen.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

import numpy as np

from benchmarks.bench_rule import ARMS, Clients
from benchmarks.history import record
from benchmarks.laws import JUDGED, Law, tuned
from curvote import DirectClassifier
from curvote.learning.directions import Line
from curvote.systems.direct.system import choose_protocol

MOST_REGRET, WORSE = 0.006, 0.01
TEST = 20_000
Errors = dict[str, float]


def lines(law: Law, epsilon: float, clients: Clients, seed: int) -> dict[str, Line]:
    """Return what `auto`, each arm, `votes` and `majority` make of the same clients."""
    found: dict[str, Line] = {}
    for arm in (*ARMS, "votes", "majority"):
        model = DirectClassifier(
            arm=arm, epsilon=epsilon, rescale="standard", random_state=seed
        ).fit(*clients)
        found[arm] = model.coef_[0], float(model.intercept_[0])
    return {"auto": found[choose_protocol(law.n, law.d, epsilon).method]} | found


def errors(law: Law, epsilon: float, runs: int) -> Errors:
    """Return mean errors of a cell."""
    rng = np.random.default_rng([*law.seed, round(1000 * epsilon)])
    z, labels = law.clients(rng, TEST)
    found: list[list[float]] = []
    for _ in range(runs):
        clients, seed = law.clients(rng, law.n), int(rng.integers(2**31))
        made = lines(law, epsilon, clients, seed)
        told = (z @ coef + intercept > 0 for coef, intercept in made.values())
        found.append([float(np.mean(one != (labels > 0))) for one in told])
    return dict(zip(made, map(float, np.mean(found, axis=0)), strict=True))


def measured(laws: Iterable[Law], runs: int) -> tuple[list[float], list[Law]]:
    """Print every cell; return the regrets, and the laws where `auto` is worse."""
    regrets, worse = [], []
    for law in laws:
        lost = 0.0
        for epsilon in law.epsilons:
            cell = errors(law, epsilon, runs)
            auto = cell["auto"]
            best = min(error for name, error in cell.items() if name != "auto")
            regrets.append(auto - best)
            lost = max(lost, auto - cell["majority"])
            taken = choose_protocol(law.n, law.d, epsilon).method
            told = " ".join(f"{name} {100 * e:5.2f}" for name, e in cell.items())
            regret = f"({taken}) regret {100 * regrets[-1]:5.2f}"
            print(f"{law.name} epsilon {epsilon:.3g}: {told} {regret}", flush=True)
        if lost > WORSE:
            worse.append(law)
    return regrets, worse


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--tuned", type=int, default=0)
    given = parser.parse_args()
    laws = list(tuned(given.tuned)) if given.tuned else list(JUDGED)
    regrets, worse = measured(laws, given.runs)
    equal = [law.name for law in worse if law.equal]
    mean = float(np.mean(regrets))
    print(f"mean regret {100 * mean:.2f} points, worst {100 * max(regrets):.2f}")
    for law in worse:
        print(f"worse than the majority: {law.name}")
    fine = mean <= MOST_REGRET and not equal and len(worse) <= 1
    target = f"mean regret at most {100 * MOST_REGRET:g}, worse on none of equal"
    print(f"target: {target} classes and on one of {len(laws)} at most: {fine}")
    record("laws", {}, sizes={"mean regret": mean, "worst regret": float(max(regrets))})
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
