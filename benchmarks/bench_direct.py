"""Protocol `direct` at a quarter, a half and one million clients with d = 8.

Every stage that a server or a client of the protocol runs is a process of its own, so
that a peak is that of one stage alone: ``privatize`` draws and stores the reports,
``aggregate`` reads them from Parquet and ends in a classifier. Fails where time grows
clearly faster than the number of clients.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.history import record
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.plan.step import Step
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store.artifacts import artifact

MILLION = 1_000_000
SIZES = (MILLION // 4, MILLION // 2, MILLION)
ARMS = {
    "mean": ("privatize", "aggregate"),
    "joint": ("privatize", "aggregate"),
    "two": ("privatize", "whiten", "refine", "aggregate"),
}
MOST_GROWTH = 1.5  # seconds for each client, against the fewest


def pipeline(n: int, arm: str) -> dict[str, object]:
    return {
        "protocol": "direct",
        "direct": {"arm": arm},
        "source": {"name": "simulated", "points": 12},
        "clients": {"train": n, "test": 1000},
        "project": {"basis": "bspline", "size": 8, "coordinates": "orthonormal"}
        | {"rescale": "standard", "scale": 0.44},
        "epsilon": [1],
        "replicates": 1,
    }


def steps(folder: Path) -> list[Step]:
    project = Project(folder)
    configured = PipelinesFile(project).configure_pipeline("many")
    return list(make_plan(project, configured).steps)


def run(folder: Path, stage: str) -> None:
    """Do one stage and print seconds and the peak of its memory."""
    (step,) = (s for s in steps(folder) if s.stage.name == stage)
    start = time.perf_counter()
    execute_step(Project(folder), step)
    seconds = time.perf_counter() - start
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "mib": kib / 1024}))


def in_a_process(stage: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--stage", stage, "--folder", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(n: int, arm: str) -> dict[str, float]:
    """Return the seconds of each stage; print them beside its peak."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        text = as_yaml({"pipelines": {"many": pipeline(n, arm)}})
        (folder / "pipelines.yaml").write_text(text)
        for stage in ("ingest", "project"):
            in_a_process(stage, folder)
        found = {stage: in_a_process(stage, folder) for stage in ARMS[arm]}
        errors = error(folder)
    for stage, row in found.items():
        each = 1e6 * row["seconds"] / n
        print(
            f"  {n:9,} {arm:6}{stage:10}{row['seconds']:7.1f} s {each:6.2f} us a client"
            f" {row['mib']:6.0f} MiB peak"
        )
    print(f"  {n:9,} {arm:6}error {100 * errors:.1f} %", flush=True)
    return {stage: row["seconds"] for stage, row in found.items()}


def error(folder: Path) -> float:
    """Return the test error of the classifier; this process itself stays small."""
    in_a_process("report", folder)
    (step,) = (s for s in steps(folder) if s.stage.name == "report")
    made = artifact(Project(folder), "report", step.key)
    scores = made.table("scores").to_pandas()
    return float(scores[scores["method"] != "majority"]["value"].iloc[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stage:
        run(given.folder, given.stage)
        return 0
    growth = {}
    for arm in ARMS:
        found = {n: sum(measure(n, arm).values()) / n for n in SIZES}
        growth[f"{arm}: growth"] = max(found.values()) / found[SIZES[0]]
    return record("direct", growth, bounds=dict.fromkeys(growth, MOST_GROWTH))


if __name__ == "__main__":
    sys.exit(main())
