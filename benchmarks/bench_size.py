"""How many numbers of a curve: what rules for `project.size` lose to the best size.

Run with ``python -m benchmarks.bench_size [--runs R] [--write]`` (some ten minutes). A
law is a covariance of curves, a slope on their principal functions, the classes' shares
and a basis that is not theirs (`benchmarks.curve_laws`). All were fixed before anything
was measured on them: ``LAWS``, on which the constants of the rule were chosen, and then
``UNSEEN``, on which they were only judged. At each (N, epsilon) protocol `auto` learns
with each of ``SIZES`` numbers from the same clients, by its own decoders; the noise of
the mean of N reports is drawn from its normal law. The regret of a rule is its error
less that of the best size in hindsight, which chance makes look better than it is.
Fails where the rule that curvote has loses ``MOST`` more in the mean than the best of
all candidates; ``--write`` writes the table of docs/choosing.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from threadpoolctl import threadpool_limits

from benchmarks.curve_laws import LAWS, UNSEEN, Law
from benchmarks.history import record
from curvote.curves.direction import Directions
from curvote.curves.encoding import volunteer_constants
from curvote.learning.directions import (
    Line,
    ReportMean,
    estimate_whitening,
    one_round_classifier,
    two_round_classifier,
)
from curvote.mechanisms.privunit import privunit_variance
from curvote.messages.arms import FIRST_ROUND_SHARE, make_directions
from curvote.messages.sizes import FACTOR, POWER, wanted_size
from curvote.systems.direct.system import choose_protocol

Array = NDArray[np.float64]
Found = dict[tuple[str, int, float, int], float]
Rule = Callable[[int, float], float]

PAGE = Path(__file__).parents[1] / "docs" / "choosing.md"
MOST = 0.002
VOLUNTEERS, TEST, RUNS = 50, 8000, 40
SIZES = (3, 5, 7, 9, 11, 13, 15, 17, 21, 25, 33)
SHOWN = (5, 7, 9, 11, 15, 21)
# (N, epsilon): N epsilon^2 from 250 to 100,000.
PLACES = (
    (1000, 0.5),
    (2000, 0.5),
    (1000, 1.0),
    (3000, 1.0),
    (2000, 2.0),
    (10_000, 1.0),
    (6000, 2.0),
    (10_000, 2.0),
    (4000, 5.0),
)
# The laws, and the seed of their runs.
SETS = {"chosen on": (LAWS, 17), "unseen": (UNSEEN, 18)}


def mean(given: Directions, z: Array, labels: Array) -> Array:
    """Return the mean (size,) of `Directions.vectors`, without making them."""
    u = given.units(z)
    label = np.sqrt(given.share) * (labels @ u) / len(u)
    if given.share == 1:
        return np.asarray(label)
    square = u.T @ u / len(u)
    above = square[np.triu_indices(given.p, 1)]
    second = np.r_[helmert(given.p) @ np.diag(square), np.sqrt(2) * above]
    return np.asarray(np.r_[label, second / given.second_scale])


def reported(
    rng: np.random.Generator, given: Directions, z: Array, labels: Array, epsilon: float
) -> ReportMean:
    """Return the mean of reports: the clients' own, and the noise of `PrivUnit`."""
    own, v = mean(given, z, labels), privunit_variance(given.size, epsilon)
    return ReportMean(own + np.sqrt(v / len(z)) * rng.standard_normal(len(own)), len(z))


def learnt(rng: np.random.Generator, z: Array, labels: Array, epsilon: float) -> Line:
    """Return the classifier of `auto`, the larger class where it takes the majority."""
    n, d = z.shape
    choice = choose_protocol(n, d, epsilon)
    if choice.arm is None:
        return np.zeros(d), float(np.sign(labels.sum()) or 1)
    given = make_directions(choice.arm, d, "standard", "auto")
    if choice.arm != "two":
        return one_round_classifier(
            reported(rng, given, z, labels, epsilon), given, epsilon
        )
    k = round(FIRST_ROUND_SHARE * n)
    one = reported(rng, given, z[:k], labels[:k], epsilon)
    made = estimate_whitening(one, given, epsilon)
    again = made.apply(z[k:]), labels[k:]
    two = reported(rng, given.whitened, *again, epsilon)
    return two_round_classifier((one, two), made, given, epsilon)


def errors(law: Law, n: int, epsilon: float, seed: list[int]) -> dict[int, float]:
    """Return the error of one run with each size, on the same clients."""
    rng = np.random.default_rng(seed)
    scores, chance = law.draw(rng, VOLUNTEERS + n + TEST)
    labels = np.where(rng.random(n) < chance[VOLUNTEERS:-TEST], 1.0, -1.0)
    found = {}
    for d in SIZES:
        coefficients = scores @ law.onto(d)
        centre, scale = volunteer_constants(coefficients[:VOLUNTEERS])
        if law.scale == "common":
            scale = np.sqrt((scale**2).mean())
        z = (coefficients - centre) / scale
        coef, constant = learnt(rng, z[VOLUNTEERS:-TEST], labels, epsilon)
        named, positive = z[-TEST:] @ coef + constant > 0, chance[-TEST:]
        found[d] = float(np.where(named, 1 - positive, positive).mean())
    return found


def measured(laws: Sequence[Law], seed: int, runs: int) -> Found:
    """Return the mean error of each (law, N, epsilon, size)."""
    found: Found = {}
    for place, law in enumerate(laws):
        for n, epsilon in PLACES:
            each = [errors(law, n, epsilon, [seed, place, run]) for run in range(runs)]
            for d in SIZES:
                found[law.name, n, epsilon, d] = float(np.mean([e[d] for e in each]))
        best = (min(SIZES, key=lambda d: found[law.name, *at, d]) for at in PLACES)
        print(f"{law.name}: best sizes", *best, flush=True)
    return found


def regrets(found: Found, rule: Rule) -> Array:
    """Return what a rule loses at each (law, N, epsilon), in [0, 1]."""
    every = dict.fromkeys(key[:3] for key in found)
    return np.array(
        [
            found[law, n, epsilon, _measured(rule(n, epsilon))]
            - min(found[law, n, epsilon, d] for d in SIZES)
            for law, n, epsilon in every
        ]
    )


def _measured(d: float) -> int:
    """Return the measured size nearest to ``d``, in ratio."""
    return min(SIZES, key=lambda size: abs(np.log(size / d)))


def fixed(d: int) -> Rule:
    return lambda n, epsilon: d


def power(c: float, a: float) -> Rule:
    return lambda n, epsilon: c * (n * epsilon**2) ** a


def candidates() -> dict[str, Rule]:
    """Return the rules that are compared: fixed sizes, and c (N epsilon^2)^a."""
    found = {f"d = {d}": fixed(d) for d in SIZES}
    for a, c in product((16, 12, 10, 8, 6, 5, 4, 3), np.arange(1, 33) / 4):
        found[f"{c:g} (N epsilon^2)^(1/{a})"] = power(c, 1 / a)
    return found


def table(every: Mapping[str, Found]) -> str:
    """Return the regrets of some rules in percent points: mean, worst."""
    rules: dict[str, Rule] = {
        f"`auto`: {FACTOR:g} (N epsilon²)^{POWER:g}": wanted_size,
        "2 (N epsilon²)^(1/6)": power(2, 1 / 6),
        "1 (N epsilon²)^(1/4)": power(1, 1 / 4),
        **{f"d = {d}, fixed": fixed(d) for d in SHOWN},
    }
    head = ["rule"]
    head += [f"{name}, {kind}" for name in every for kind in ("mean", "worst")]
    lines = [head, ["---"] * len(head)]
    for name, rule in rules.items():
        lost = [100 * regrets(found, rule) for found in every.values()]
        ends = (f"{end:.1f}" for one in lost for end in (one.mean(), one.max()))
        lines.append([name, *ends])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(text: str) -> None:
    """Put the table between its markers in docs/choosing.md."""
    page = PAGE.read_text(encoding="utf-8")
    marked = re.compile(r"<!-- sizes: .*? -->\n.*?<!-- end of sizes -->", re.DOTALL)
    made = f"<!-- sizes: benchmarks/bench_size.py -->\n{text}\n<!-- end of sizes -->"
    PAGE.write_text(marked.sub(lambda _: made, page), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with threadpool_limits(limits=1):
        every = {name: measured(*own, given.runs) for name, own in SETS.items()}
    chosen = next(iter(every.values()))
    rows = {name: regrets(chosen, rule) for name, rule in candidates().items()}
    for name in sorted(rows, key=lambda name: float(rows[name].mean()))[:10]:
        lost = 100 * rows[name]
        print(f"{name}: mean {lost.mean():.2f} points, worst {lost.max():.1f}")
    print(text := table(every))
    if given.write:
        write(text)
    best, own = min(row.mean() for row in rows.values()), regrets(chosen, wanted_size)
    lost = {"lost to the best rule": float(own.mean() - best)}
    return record("size", {}, sizes=lost, bounds=dict.fromkeys(lost, MOST))


if __name__ == "__main__":
    sys.exit(main())
