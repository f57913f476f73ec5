"""How often a pipeline's champion moves though its runs are of equal quality.

Run with ``python -m benchmarks.champion_moves [--runs R] [--series S]``: real small
runs that differ in nothing but the seed, in random orders of 20, then drawn scores of
several laws and numbers of replicates. Prints how many series moved it how often, and
how often one that is better by some standard errors is found at the tenth comparison.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.chance_alone import SMALL, ran
from curvote.chain.axis import Cell
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.run import champion
from curvote.pipeline.run.champion import ModelScore, judge, score_model

CELL = Cell.from_mapping({"protocol": "mrma", "epsilon": 1.0, "learner": "centroid"})
LAWS = {
    "normal": lambda rng, size: rng.normal(0.2, 0.02, size),
    "binomial of 40": lambda rng, size: rng.binomial(40, 0.2, size) / 40,
    "exponential": lambda rng, size: rng.exponential(0.1, size),
}
ANY, RUNS = Project(Path()), 20


def score(scores: np.ndarray, *, release: bool = False) -> ModelScore:
    """Return the score of a model by its replicates."""
    n, se = len(scores), float(scores.std(ddof=1)) / len(scores) ** 0.5
    basis = {"measure": "error"}
    return ModelScore("", basis, float(scores.mean()), se, 0 if release else n, "lower")


def moves(series: Sequence[ModelScore]) -> list[int]:
    """Return the places in a series at which the champion moves."""
    best, looks, places = series[0], 0, []
    for place, new in enumerate(series[1:], start=1):
        verdict = judge(ANY, best, new, looks)
        looks += verdict.counted
        if verdict.champion:
            best = new
            places.append(place)
    return places


def main() -> None:
    """Print all shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--series", type=int, default=2000)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        text = as_yaml({"pipelines": {"small": SMALL}})
        project.pipelines_file.write_text(text, encoding="utf-8")
        runs = [ran(project, seed) for seed in range(1, given.runs + 1)]
        every = [score_model(project, run, CELL) for run in runs]
    champion.load_record = lambda *_: None  # type: ignore[assignment]  # nothing kept
    real = [s for s in every if s]
    orders = (rng.permutation(len(real))[:RUNS] for _ in range(given.series))
    counts = Counter(len(moves([real[i] for i in order])) for order in orders)
    print(
        f"{len(real)} real runs, {given.series} orders: {dict(sorted(counts.items()))}"
    )
    total: Counter[int] = Counter()
    for law, draw in LAWS.items():
        for n in (2, 5, 10, 50):
            drawn = draw(rng, (given.series, RUNS, n))
            counts = Counter(len(moves([score(s) for s in each])) for each in drawn)
            total += counts
            print(f"{law}, {n} replicates: {sorted(counts.items())}")
    drawn = LAWS["normal"](rng, (given.series, RUNS, 50))
    counts = Counter(
        len(moves([score(s, release=True) for s in each])) for each in drawn
    )
    total += counts
    print(
        f"releases: {dict(sorted(counts.items()))}\nall: {dict(sorted(total.items()))}"
    )
    for errors in (3, 4, 5, 6):
        hits = 0
        for scores in LAWS["normal"](rng, (given.series, 11, 20)):
            series = [score(s) for s in scores]
            gain = errors * 0.02 * (2 / 20) ** 0.5
            better = replace(series[-1], value=series[-1].value - gain)
            hits += 10 in moves([*series[:-1], better])
        print(f"better by {errors} standard errors: {hits / given.series:.1%} found")


if __name__ == "__main__":
    main()
