"""What agreement costs: queries and milliseconds of every kind of evidence, in one run.

Run with ``python -m benchmarks.bench_utility [--full]`` and the stroke table at hand
(``CURVOTE_DATA_MIRROR``). For one record of it and `pm_01` on age and bmi at a total of
2: the printed procedure (a radius by 516,446 queries), 5,000 draws, and what the engine
of the model knows exactly. Then what draws are worth, each against the truth of a
network on a fine grid, or against draws alone: coverage, width, a surrogate.
``--full`` takes as many cases as the targets are stated for. Exits with 1 where a
target is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.history import record
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.papers.qcu.studies import STUDIES
from curvote.pipeline.config.project import Project
from curvote.systems.utility.method.engines.base import (
    Answers,
    Channel,
    Draws,
    Question,
    Surface,
    choose_engine,
    make_channel,
)
from curvote.systems.utility.method.engines.black_box import (
    BlackBox,
    BlackBoxSurface,
)
from curvote.systems.utility.method.engines.discriminants import Linear, LinearModel
from curvote.systems.utility.method.engines.trees.engine import Trees
from curvote.systems.utility.method.profile import published_boxes
from curvote.systems.utility.method.quantification import surrogate
from tests.utility.black_boxes import grid_shares

Array = NDArray[np.float64]

BOUNDS = np.array([[0.0, 1.0], [0.0, 1.2]])
PRINTED = 516_446  # queries of a printed radius
DRAWS = 5000
WIDEST = 0.0145  # half of an interval of so many draws
TOTALS = (1.0, 2.0, 4.0)

SEVEN = (
    "pm_01",
    "square_wave",
    "hybrid",
    "laplace",
    "joint_box",
    "exponential",
    "k_rr",
)


@dataclass(frozen=True)
class Target:
    """A figure that was measured, and whether it is what was asked."""

    what: str
    found: float
    met: bool

    def __str__(self) -> str:
        return f"{self.what:66} {self.found:10.4f}  {'met' if self.met else 'MISSED'}"


@cache
def table() -> tuple[Array, NDArray[np.int64]]:
    return STUDIES["stroke"].read(Project(Path()))


@cache
def model(kind: str) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    X, y = table()
    more = np.r_[np.flatnonzero(y == 0), np.repeat(np.flatnonzero(y == 1), 4)]
    made = {
        "logistic": LogisticRegression(class_weight="balanced"),
        "forest": RandomForestClassifier(100, class_weight="balanced", random_state=42),
        "network": MLPClassifier((32, 32), random_state=1, max_iter=2000),
    }[kind]
    return made.fit(X[more], y[more]) if kind == "network" else made.fit(X, y)


def question(kind: str, places: NDArray[np.int64]) -> Question:
    return Question(model(kind), table()[0][places], (0, 5), BOUNDS)


def drawn(kind: str, n: int) -> BlackBoxSurface:
    every = np.arange(0, 1000, 1000 // n)[:n]
    found = BlackBox().surface(question(kind, every))
    assert isinstance(found, BlackBoxSurface)
    return found


def channel(epsilon: float, mechanism: str = "pm_01") -> Channel:
    middle = BOUNDS.mean(axis=1)
    return make_channel(mechanism, epsilon=epsilon, bounds=BOUNDS, fill_value=middle)


def agreement(surface: Surface, found: Answers) -> tuple[Array, Array, Array]:
    at = np.arange(len(surface.clean)), surface.clean
    return found.share[at], found.lower[at], found.upper[at]


def timed(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(*given), 1000 * (time.perf_counter() - start)


def one_record() -> Iterator[Target]:
    """Compare what stands behind a figure for the record of the paper's figures."""
    print(f"{'model':9} {'evidence':28} {'queries':>9} {'ms':>9}  agreement")
    for kind in ("logistic", "forest", "network"):
        asked = question(kind, np.array([STUDIES["stroke"].single]))
        box, spent = timed(published_boxes, asked, SeededEntropy(1))
        line(kind, "printed radius", PRINTED, spent, f"radius {box.radius[0]:.2f}")
        surface = BlackBox().surface(asked)
        noise = channel(2.0)
        draws = Draws(DRAWS, 0.95, SeededEntropy(2))
        found, spent = timed(surface.answers, noise, draws)
        line(kind, f"{DRAWS} draws", DRAWS, spent, shown(surface, found))
        engine, _ = choose_engine(asked)
        known, spent = timed(engine.surface, asked)
        line(kind, f"{engine.name}: surface", 1, spent, "")
        exact, spent = timed(known.answers, noise, Draws())
        line(kind, f"{engine.name}: {exact.evidence}", 0, spent, shown(known, exact))
        low, high = (each[0] for each in agreement(surface, found)[1:])
        half = (high - low) / 2
        yield Target(f"{kind}: half width of {DRAWS} draws", half, half <= WIDEST)
    less = PRINTED / DRAWS
    yield Target("queries of a printed radius for one of draws", less, less >= 100)


def line(*cells: Any) -> None:
    kind, what, queries, spent, text = cells
    print(f"{kind:9} {what:28} {queries:9,d} {spent:9.2f}  {text}")


def shown(surface: Surface, found: Answers) -> str:
    share, low, high = (each[0] for each in agreement(surface, found))
    return f"{share:.4f} [{low:.4f}, {high:.4f}]"


def coverage(cases: int) -> Iterator[Target]:
    """Compare intervals with a network's truth on a fine grid, at three totals."""
    known = drawn("network", cases // len(TOTALS))
    inside, widths = [], []
    for epsilon in TOTALS:
        noise = channel(epsilon)
        truth = grid_shares(known, noise, 300)
        found = known.answers(noise, Draws(DRAWS, 0.95, SeededEntropy(7)))
        _, low, high = agreement(known, found)
        inside.append((low <= truth) & (truth <= high))
        widths.append((high - low).max() / 2)
    share, half = float(np.mean(inside)), float(max(widths))
    yield Target(f"covered, of {np.size(inside)} cases at .95", share, share >= 0.92)
    yield Target(f"half width of {DRAWS} draws, the widest", half, half <= WIDEST)


def surrogates(records: int) -> Iterator[Target]:
    """Compare 1,000 draws beside 20,000 queries' trees with 2,000 draws alone."""
    for kind in ("logistic", "forest", "network"):
        alone = drawn(kind, records)
        ask = partial(surrogate, sensitive=(0, 5), bounds=BOUNDS, queries=20_000)
        made, spent = timed(ask, model(kind), table()[0])
        beside = made.beside(alone)
        print(f"{kind}: trees fitted to 20,000 queries in {spent:.0f} ms")
        for epsilon in TOTALS:
            noise = channel(epsilon)
            plain = alone.answers(noise, Draws(2000, 0.95, SeededEntropy(1)))
            found = beside.answers(noise, Draws(1000, 0.95, SeededEntropy(2)))
            ratio = width(alone, found) / width(alone, plain)
            what = f"{kind}, total {epsilon:g}: width of half the draws"
            yield Target(what, ratio, ratio <= 1)


def width(surface: Surface, found: Answers) -> float:
    _, low, high = agreement(surface, found)
    return float((high - low).mean())


def linear() -> Iterator[Target]:
    """Time exact shares of 1,000 records, and brackets of 49 noised features."""
    asked = question("logistic", np.arange(1000))
    known = choose_engine(asked)[0].surface(asked)
    for name in ("pm_01", "laplace", "k_rr", "joint_box"):
        _, spent = timed(known.answers, channel(2.0, name), Draws())
        what = f"logistic, 1,000 records, {name}: seconds"
        yield Target(what, spent / 1000, spent < 1000)
    rng = np.random.default_rng(1)
    model = LinearModel(rng.normal(size=49), 0.1)
    bounds, pixels = np.tile([-1.0, 1.0], (49, 1)), rng.uniform(-1, 1, (8, 49))
    many = Question(model, pixels, tuple(range(49)), bounds)
    noise = make_channel("pm_01", epsilon=98, bounds=bounds, fill_value=np.zeros(49))
    found, spent = timed(Linear().surface(many).answers, noise, Draws())
    widest = float((found.upper - found.lower).max())
    yield Target("linear, 49 features: widest bracket", widest, widest <= 0.005)
    yield Target("linear, 49 features: seconds a record", spent / 8000, spent < 16000)


def forests() -> Iterator[Target]:
    """Compare a forest's cells with asking it on a grid, and 35 channels with those."""
    single = np.array([STUDIES["stroke"].single])
    sides = [np.linspace(low, high, 200) for low, high in BOUNDS]
    rows = np.repeat(table()[0][single], 40_000, axis=0)
    rows[:, [0, 5]] = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    _, asking = timed(model("forest").predict, rows)
    noises = [channel(total, name) for name in SEVEN for total in (1, 2, 3, 4, 8)]
    for places in (single, np.arange(100)):
        asked = question("forest", places)
        surface, spent = timed(Trees().surface, asked)
        _, all_of_them = timed(each_of, surface, noises)
        line("forest", f"{len(places)} records: 35 channels", 0, all_of_them, "")
        line("forest", f"{len(places)} records: surface", 0, spent, "")
        if len(places) == 1:
            share = spent / asking
            yield Target("forest: cells, for `predict` of 200 x 200", share, share <= 2)
    share = all_of_them / spent
    yield Target("forest, 100 records: 35 channels for the cells", share, share <= 1)


def each_of(surface: Surface, noises: list[Channel]) -> list[Answers]:
    return [surface.answers(noise, Draws()) for noise in noises]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all cases")
    full = parser.parse_args().full
    warnings.simplefilter("ignore")  # a network that stopped early is one as well
    try:
        table()
    except UserError as lacking:
        print(f"Left out: {lacking}")
        return 0
    found = list(one_record())
    found += coverage(300 if full else 60)
    found += forests()
    found += surrogates(100 if full else 20)
    found += linear()
    print(*found, sep="\n")
    return recorded("utility", found)


def recorded(name: str, found: list[Target]) -> int:
    record(name, {}, sizes={each.what: each.found for each in found})
    return 0 if all(each.met for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
