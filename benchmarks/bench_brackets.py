"""What branch and bound takes: widths and seconds a record, networks and trees.

Run with ``python -m benchmarks.bench_brackets`` and the stroke table at hand
(``CURVOTE_DATA_MIRROR``). A network of two layers of 32 with two sensitive features,
boosting of 100 trees of depth 3 with three, where the exact sums stand beside. Exits
with 1 where a target is missed; seconds are those of the processor.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.bench_utility import BOUNDS, Target, model, recorded, table
from curvote.base.errors import UserError
from curvote.systems.utility.method.engines.base import (
    Draws,
    Engine,
    Question,
    make_channel,
)
from curvote.systems.utility.method.engines.branched_trees import BranchedTrees
from curvote.systems.utility.method.engines.network import Network
from curvote.systems.utility.method.engines.trees.engine import Trees
from curvote.systems.utility.method.profile import certify_box

MECHANISMS = ("pm_01", "laplace", "k_rr", "exponential", "joint_box")
RECORDS = 20
THREE = np.vstack([BOUNDS, [[0.0, 1.0]]])


def brackets(
    what: str, engine: Engine, asked: Question, widest: float, most: float
) -> Iterator[Target]:
    """Compare widths and seconds with what they may be at most."""
    n = len(asked.records)
    start = time.process_time()
    surface = engine.surface(asked)
    begun = (time.process_time() - start) / n
    yield Target(f"{what}: surface, seconds a record", begun, begun <= most)
    widths, spent = [], []
    for mechanism in MECHANISMS:
        for epsilon in (1.0, 2.0, 4.0, 8.0):
            middle = asked.bounds.mean(axis=1)
            noise = make_channel(
                mechanism, epsilon=epsilon, bounds=asked.bounds, fill_value=middle
            )
            start = time.process_time()
            found = surface.answers(noise, Draws())
            spent.append((time.process_time() - start) / n)
            widths.append((found.upper - found.lower).max())
    many = f"{what}: {len(widths)} laws"
    yield Target(f"{many}, widest", max(widths), max(widths) <= widest)
    yield Target(f"{many}, most seconds a record", max(spent), max(spent) <= most)
    yield Target(f"{many}, mean seconds a record", float(np.mean(spent)), True)
    start = time.process_time()
    certify_box(surface, asked.values, bounds=asked.bounds)
    each = (time.process_time() - start) / n
    yield Target(f"{what}: robust box, seconds a record", each, True)


def boosted() -> Question:
    from sklearn.ensemble import GradientBoostingClassifier

    X, y = table()
    fitted = GradientBoostingClassifier(random_state=1).fit(X, y)
    return Question(fitted, X[:5], (0, 5, 4), THREE)


def beside() -> Iterator[Target]:
    """Compare the brackets of trees with the exact sums over all cells."""
    asked = boosted()
    noise = make_channel(
        "pm_01", epsilon=3.0, bounds=asked.bounds, fill_value=asked.bounds.mean(axis=1)
    )
    exact = Trees().surface(asked).answers(noise, Draws()).share
    found = BranchedTrees().surface(asked).answers(noise, Draws())
    off = max((found.lower - exact).max(), (exact - found.upper).max())
    yield Target("boosting: exact share beyond the bracket", float(off), off <= 0)


def main() -> int:
    warnings.simplefilter("ignore")  # a network that stopped early is one as well
    try:
        X, _ = table()
    except UserError as lacking:
        print(f"Left out: {lacking}")
        return 0
    asked = Question(model("network"), X[:RECORDS], (0, 5), BOUNDS)
    found = list(brackets("network 32, 32", Network(), asked, 0.01, 5.0))
    found += brackets("boosting", BranchedTrees(), boosted(), 0.02, 15.0)
    found += beside()
    print(*found, sep="\n")
    return recorded("brackets", found)


if __name__ == "__main__":
    sys.exit(main())
