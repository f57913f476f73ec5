"""A user's long-format curves through the chain: memory and time at 1 and 2 million.

``--full`` adds 10 million clients (240 million rows, a file of about 1.5 GB, and about
as much again of results, in the folder for temporary files). Writing the file and each
stage are processes of their own, so that a peak is that of one stage alone. Fails where
a stage needs 2 GiB, or where time grows clearly faster than the number of clients.
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

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.history import record
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan

MILLION = 1_000_000
POINTS = 24
BLOCK = 50_000
TARGET_MIB = 2048.0
MOST_GROWTH = 1.5  # seconds for each client, against the smallest file
STAGES = ("ingest", "project")
PIPELINE = {
    "source": {
        "name": "curves",
        "path": "long.parquet",
        "id": "person",
        "time": "hour",
        "value": "activity",
        "label": "low_hdl",
        "positive": 1,
        "grid": {"start": 0, "stop": 23, "points": POINTS},
        "unit": "h",
        "bounds": [0, 1000],
        "gaps": {"most": 3},
    },
    "clients": {"train": 1000, "vote": 1000, "test": 1000},
    "project": {
        "basis": "fourier",
        "size": 5,
        "rescale": "min_max",
        "bounds": "public",
    },
    "train": {"count": 10, "size": 100},
    "epsilon": [1],
    "learners": ["centroid"],
}


def write(folder: Path, n: int) -> None:
    """Stream ``n`` clients of 24 measurements at jittered times, in random order."""
    text = as_yaml({"pipelines": {"many": PIPELINE}})
    (folder / "pipelines.yaml").write_text(text)
    schema = pa.schema(
        {"person": pa.int64(), "hour": pa.float32(), "activity": pa.float32()}
        | {"low_hdl": pa.int8()}
    )
    rng = np.random.default_rng(1)
    ids = rng.permutation(n)
    with pq.ParquetWriter(folder / "long.parquet", schema) as writer:
        for start in range(0, n, BLOCK):
            writer.write_table(pa.table(block(rng, ids[start : start + BLOCK]), schema))


def block(rng: np.random.Generator, ids: np.ndarray) -> dict[str, np.ndarray]:
    n = len(ids)
    hours = np.arange(POINTS) + rng.integers(-20, 21, size=(n, POINTS)) / 100
    activity = rng.gamma(2, 60, size=(n, POINTS)).round(1)
    return {
        "person": np.repeat(ids, POINTS),
        "hour": hours.astype(np.float32).ravel(),
        "activity": activity.astype(np.float32).ravel(),
        "low_hdl": np.repeat((ids % 3 == 0).astype(np.int8), POINTS),
    }


def run(folder: Path, stage: str) -> None:
    """Do one stage of the chain and print clients, seconds and peak memory."""
    project = Project(folder)
    configured = PipelinesFile(project).configure_pipeline("many")
    (step,) = (s for s in make_plan(project, configured).steps if s.stage.name == stage)
    start = time.perf_counter()
    made = execute_step(project, step)
    seconds = time.perf_counter() - start
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"rows": made.rows, "seconds": seconds, "mib": kib / 1024}))


def in_a_process(task: str, folder: Path, n: int) -> str:
    words = ["--task", task, "--folder", str(folder), "--clients", str(n)]
    command = [sys.executable, __file__, *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def measure(n: int) -> dict[str, dict[str, float]]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        in_a_process("write", folder, n)
        size = (folder / "long.parquet").stat().st_size / 2**20
        print(f"{n:,} clients, {n * POINTS:,} rows, {size:.0f} MiB")
        found = {s: json.loads(in_a_process(s, folder, n)) for s in STAGES}
    for stage, row in found.items():
        each = 1e6 * row["seconds"] / n
        seconds, mib = row["seconds"], row["mib"]
        print(
            f"  {stage:8}{seconds:8.1f} s {each:6.2f} us a client {mib:6.0f} MiB peak"
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--task", choices=["write", *STAGES], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--clients", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task == "write":
        write(given.folder, given.clients)
    elif given.task:
        run(given.folder, given.task)
    else:
        return compare([1, 2, 10] if given.full else [1, 2])
    return 0


def compare(millions: list[int]) -> int:
    found = {m: measure(m * MILLION) for m in millions}
    peak = max(row["mib"] for stages in found.values() for row in stages.values())
    growth = max(
        (found[m][stage]["seconds"] / m) / found[millions[0]][stage]["seconds"]
        for m in millions
        for stage in STAGES
    )
    bounds = {"growth": MOST_GROWTH, "MiB": TARGET_MIB}
    return record("ingest", {"growth": growth}, sizes={"MiB": peak}, bounds=bounds)


if __name__ == "__main__":
    sys.exit(main())
