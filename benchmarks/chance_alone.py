"""How often `curvote diff` calls a score changed where nothing but the seed is.

Run with ``python -m benchmarks.chance_alone [--runs R]``: runs on plain functions,
each compared with every other one. Prints the share of scores whose p, taken alone, is
below 5 %, and the share of comparisons that call any score changed.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np

from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.run.comparison import ALPHA, compare_scores
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord

SMALL = {
    "source": {"name": "simulated", "points": 20},
    "clients": {"train": 100, "vote": 200, "test": 150},
    "project": {"basis": "bspline", "size": 4, "judge": "coefficients"},
    "train": {"count": 5, "size": 20},
    "aggregate": {"cutoff": 0.7},
    "epsilon": [1, 4],
    "learners": ["centroid"],
    "replicates": 10,
}


def ran(project: Project, seed: int) -> RunRecord:
    """Run the small pipeline with a seed."""
    configured = PipelinesFile(project).configure_pipeline("small", [f"seed={seed}"])
    made = make_plan(project, configured, fetch=True)
    record = records.record_start(project, made.configured, made.steps, "")
    for step in made.steps_to_run():
        execute_step(project, step)
    return records.record_end(project, record, "completed")


def main() -> None:
    """Print both shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        text = as_yaml({"pipelines": {"small": SMALL}})
        project.pipelines_file.write_text(text, encoding="utf-8")
        runs = [ran(project, seed) for seed in range(1, given.runs + 1)]
        found = [compare_scores(project, a, b) for a, b in combinations(runs, 2)]
    chances = np.array([c.p for each in found for c in each if c.p is not None])
    called = np.mean([any(c.significant for c in each) for each in found])
    print(f"{len(chances):,} scores: {np.mean(chances < ALPHA):.1%} below {ALPHA:.0%}")
    print(f"{len(found):,} comparisons: {called:.1%} call any changed")


if __name__ == "__main__":
    main()
