"""Releases of millions of clients: time, memory and share of the machine's limit.

One client has six numbers in a Parquet file; messages leave by the operating system's
words and exact samplers, Parquet to Parquet, without the ledger. Each step of a chain
is a process of its own with two workers; the peak is that of the largest process.
``--full`` measures 10 million clients beside 1 million (else 1 million beside 200,000):
about 6 GiB in the folder for temporary files, and half an hour.

Fails where a bound of the issue is missed: see `BOUNDS`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from curvote.entropy import SystemEntropy
from curvote.run import execute as executing
from curvote.run.engines import Engine
from curvote.run.config.file import PipelinesFile
from curvote.run.planner import Plan, make_plan
from curvote.run.project import Project
from curvote.run.store.artifacts import artifact, commit

D: Final = 6
ROWS: Final = 1 << 16
WORKERS: Final = 2
MOST_SECONDS, MOST_MIB = 60.0, 1024.0  # of a release at the larger size
MOST_GROWTH: Final = 1.2
LEAST_SHARE: Final = 0.15
JOINT_MIB: Final = 700.0
SECOND_PLAN: Final = 5.0
FEW: Final = 2000
RELEASES: Final = {"report": "privatize", "vote": "evaluate", "direct": "privatize"}


def pipelines(n: int) -> dict[str, Any]:
    """Return a pipeline for each message, so that nearly all clients send it."""
    names = [f"x{i}" for i in range(D)]
    common = {
        "mode": "production",
        "source": {
            "name": "table",
            "path": "clients.parquet",
            "id": "id",
            "label": "sick",
            "positive": 1,
            "features": names,
            "bounds": {name: [-4, 4] for name in names},
            "duplicates": "keep",
        },
        "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
        "epsilon": 4,
        "seed": 7,
        "ledger": {"per_client": {"epsilon": 4}},
    }
    trained = {"train": {"count": 20, "size": 50}, "learners": ["centroid"]}
    direct = {"protocol": "direct", "clients": {"train": n}}
    return {
        "report": common | trained | {"clients": {"train": n - FEW, "vote": FEW}},
        "vote": common | trained | {"clients": {"train": FEW, "vote": n - FEW}},
        "direct": common | direct | {"direct": {"arm": "mean"}},
        "joint": common | direct | {"direct": {"arm": "joint"}},
    }


def write(folder: Path, n: int) -> None:
    """Write ``n`` clients of six numbers and a label, and the pipelines."""
    text = yaml.safe_dump({"pipelines": pipelines(n)})
    (folder / "pipelines.yaml").write_text(text)
    rng = np.random.default_rng(1)
    fields = {"id": pa.int64(), "sick": pa.int8()}
    schema = pa.schema(fields | {f"x{i}": pa.float64() for i in range(D)})
    with pq.ParquetWriter(folder / "clients.parquet", schema) as writer:
        for start in range(0, n, ROWS):
            size = min(ROWS, n - start)
            x = rng.normal(size=(size, D)).clip(-4, 4)
            rows = {"id": np.arange(start, start + size), "sick": (x[:, 0] > 0) * 1}
            rows |= {f"x{i}": x[:, i] for i in range(D)}
            writer.write_table(pa.table(rows, schema))


def plan(folder: Path, name: str) -> Plan:
    project = Project(folder)
    return make_plan(project, PipelinesFile(project).configured(name))


def do_plan(folder: Path, name: str, _stage: str) -> float:
    start = time.perf_counter()
    plan(folder, name)
    return time.perf_counter() - start


def do_stage(folder: Path, name: str, stage: str) -> float:
    """Do one stage; a release without the ledger."""
    project = Project(folder)
    executing.release = lambda project, step, target, compute: commit(  # type: ignore[assignment]
        compute(), target
    )
    (step,) = (s for s in plan(folder, name).steps if s.stage.name == stage)
    start = time.perf_counter()
    executing.execute(project, step, engine=Engine("local", WORKERS))
    return time.perf_counter() - start


def do_limit(folder: Path, name: str, stage: str) -> float:
    """Return the seconds that words, reading and writing alone take of a release.

    As many words as the sampler asks for, counted on one shard; the columns that it
    reads, and bytes as many as it writes, made durable.
    """
    project = Project(folder)
    steps = {step.stage.name: step for step in plan(folder, name).steps}
    made = artifact(project, stage, steps[stage].key)
    read = artifact(project, "ingest", steps["ingest"].key)
    words = asked(folder, name, stage) * made.rows
    start = time.perf_counter()
    for part in range(0, words, 1 << 20):
        SystemEntropy().words(min(1 << 20, words - part))
    middle = time.perf_counter()
    for _ in read.shards("clients", read.places("clients")[0], ("curve", "label")):
        pass
    size = sum(entry["bytes"] for entry in made.manifest["tables"].values())
    with (folder / "limit").open("wb") as stream:
        block = bytes(1 << 20)
        for _ in range(size >> 20):
            stream.write(block)
        os.fsync(stream.fileno())
    (folder / "limit").unlink()
    # Words are drawn by all workers at once, the file is one.
    return (middle - start) / WORKERS + time.perf_counter() - middle


def in_a_process(
    task: str, folder: Path, name: str = "", stage: str = "", n: int = 0
) -> tuple[dict[str, float], float]:
    """Return what a task printed, and the MiB of its largest process."""
    words = ["--task", task, "--folder", str(folder), "--clients", str(n)]
    words += ["--pipeline", name, "--stage", stage]
    command = [sys.executable, __file__, *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stop, peaks = Event(), dict[int, int]()
    watching = Thread(target=_watch, args=(child.pid, stop, peaks))
    watching.start()
    out, _ = child.communicate()
    stop.set()
    watching.join()
    if child.returncode:
        raise SystemExit(f"{task} {name} {stage} failed")
    told: dict[str, float] = json.loads(out or "{}")
    return told, max(peaks.values(), default=0) / 1024


def _watch(pid: int, stop: Event, peaks: dict[int, int]) -> None:
    """Note the peak (KiB) of a process and its descendants until told to stop."""
    while not stop.wait(0.05):
        for each in _family(pid):
            peaks[each] = max(peaks.get(each, 0), _peak(each))


def _family(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _family(int(child))


def _peak(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = (line for line in text.splitlines() if line.startswith("VmHWM"))
    return int(next(lines, "VmHWM: 0 kB").split()[1])


class _Counted:
    """The operating system's words, counted."""

    def __init__(self) -> None:
        self.n = 0

    def words(self, n: int) -> Any:
        self.n += n
        return SystemEntropy().words(n)
