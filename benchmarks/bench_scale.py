"""Releases of millions of clients: time, memory and share of the machine's limit.

A client has six numbers in a Parquet file; messages leave by the operating system's
words and exact samplers, Parquet to Parquet, without the ledger. Each step is a process
of its own, with two workers in the steps that have shards; a peak is that of the
largest process. ``--full`` holds 10 million clients against 1 million (else 1 million
against 200,000) and needs 12 GiB in the folder for temporary files. Fails where a bound
is missed: a release of the larger size 60 s and 1 GiB, a client there at most 1.2 times
the seconds and 1.2 times the memory of the smaller size, at least 15 % of the limit
(words, reading and writing alone), a second plan 5 s, arm ``joint`` 700 MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.history import record
from curvote.chain.stage import Place
from curvote.entropy import SystemEntropy, Words
from curvote.protocols.message import knowledge, message_of
from curvote.run import execute as executing
from curvote.run.config.file import PipelinesFile
from curvote.run.engines import Engine
from curvote.run.plan.step import Step
from curvote.run.planner import make_plan
from curvote.run.project import Project
from curvote.run.store.artifacts import Artifact, commit
from curvote.task import Task

D: Final = 6
ROWS: Final = 1 << 16
WORKERS: Final = 2
FEW: Final = 2000
TICKS: Final = os.sysconf("SC_CLK_TCK")
# The pipeline of each measured release, and its steps; the last one is measured.
RELEASES: Final = {
    "report": ("ingest", "project", "privatize"),
    "vote": ("ingest", "project", "privatize", "train", "evaluate"),
    "direct": ("ingest", "project", "privatize"),
}
JOINT: Final = ("ingest", "project", "privatize", "aggregate")


@dataclass(frozen=True)
class Took:
    """What a step took: seconds by the clock, of all processors, and MiB at most."""

    seconds: float
    cpu: float
    mib: float


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
    }
    trained = {"train": {"count": 20, "size": 50}, "learners": ["centroid"]}
    direct = {"protocol": "direct", "clients": {"train": n}}
    named = {
        "report": trained | {"clients": {"train": n - FEW, "vote": FEW}},
        "vote": trained | {"clients": {"train": FEW, "vote": n - FEW}},
        "direct": direct | {"direct": {"arm": "mean"}},
        "joint": direct | {"direct": {"arm": "joint"}},
    }
    return {
        name: common
        | own
        | {"ledger": {"per_client": {"epsilon": 4}, "population": name}}
        for name, own in named.items()
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


def steps(folder: Path, name: str) -> dict[str, Step]:
    """Return the steps of a pipeline by the names of their stages."""
    configured = PipelinesFile(Project(folder)).configured(name)
    return {s.stage.name: s for s in make_plan(Project(folder), configured).steps}


def task_plan(folder: Path, name: str, _stage: str) -> float:
    """Return the seconds of a plan."""
    start = time.perf_counter()
    steps(folder, name)
    return time.perf_counter() - start


def task_step(folder: Path, name: str, stage: str) -> float:
    """Do a step and return its seconds."""
    step, engine = steps(folder, name)[stage], Engine("local", WORKERS)
    start = time.perf_counter()
    executing.execute(Project(folder), step, engine=engine)
    return time.perf_counter() - start


def task_release(folder: Path, name: str, stage: str) -> float:
    """Do a release without the ledger: nobody is counted in these folders."""
    executing.release = _unledgered  # type: ignore[attr-defined]
    return task_step(folder, name, stage)


def _unledgered(_project: Any, _step: Any, target: Path, compute: Any) -> Artifact:
    return commit(compute(), target)


def task_limit(folder: Path, _name: str, stage: str) -> float:
    """Return the seconds of a release's words, reading and writing alone.

    Both processors draw as many words as the sampler asks for, then one reads what it
    reads and writes, for good, as many bytes as it writes.
    """
    project = Project(folder)
    made = Artifact(next((project.artifacts / stage).glob("[!.]*")))
    read = Artifact(next((project.clients / "ingest").glob("[!.]*")))
    (place,) = read.places("clients")
    n = sum(len(part["label"]) for part in read.shards("clients", place, ("label",)))
    words = int(_asked(made, read, place) * n / WORKERS)
    start = time.perf_counter()
    drawing = [Thread(target=_draw, args=(words,)) for _ in range(WORKERS)]
    for each in drawing:
        each.start()
    for each in drawing:
        each.join()
    for _ in read.shards("clients", place, ("curve", "label")):
        pass
    size = sum(entry["bytes"] for entry in made.manifest["tables"].values())
    _write(folder / "limit", size)
    return time.perf_counter() - start


def _draw(words: int) -> None:
    for start in range(0, words, 1 << 20):  # `os.urandom` lets other threads run
        SystemEntropy().words(min(1 << 20, words - start))


def _write(path: Path, size: int) -> None:
    with path.open("wb") as stream:
        for start in range(0, size, 1 << 20):
            stream.write(bytes(min(1 << 20, size - start)))
        stream.flush()
        os.fsync(stream.fileno())
    path.unlink()


def _asked(made: Artifact, read: Artifact, place: Place) -> float:
    """Return how many words a client costs: drawn, sent to a bucket, put in order."""
    task, counted = Task.from_json(made.facts["task"]), _Counted()
    some = read.shard("clients", place, 0, ("curve", "label"))
    n = len(some["label"])
    judge = np.zeros(n, dtype=np.int64) if task.candidates else None
    known = knowledge(task, some["curve"], some["label"], judge)
    message_of(task).draw(task, known, counted)
    return counted.n / n + 2


class _Counted(SystemEntropy):
    """The operating system's words, counted."""

    n = 0

    def words(self, n: int) -> Words:
        """Return fresh words."""
        self.n += n
        return super().words(n)


def in_a_process(
    task: str, folder: Path, name: str = "", stage: str = "", n: int = 0
) -> Took:
    """Return what a task took, in a process of its own."""
    words = ["--task", task, "--folder", str(folder), "--clients", str(n)]
    words += ["--pipeline", name, "--stage", stage]
    command = [sys.executable, "-m", "benchmarks.bench_scale", *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stop, seen = Event(), dict[int, tuple[float, int]]()
    watching = Thread(target=_watch, args=(child.pid, stop, seen))
    watching.start()
    out, _ = child.communicate()
    stop.set()
    watching.join()
    if child.returncode:
        raise SystemExit(f"{task} {name} {stage} failed")
    cpu = sum(own for own, _ in seen.values())
    return Took(json.loads(out), cpu, max(peak for _, peak in seen.values()) / 1024)


def _watch(pid: int, stop: Event, seen: dict[int, tuple[float, int]]) -> None:
    """Note seconds and peak (KiB) of a process and its descendants, until stopped."""
    while not stop.wait(0.05):
        for each in _family(pid):
            try:
                seen[each] = _usage(each)
            except (OSError, StopIteration):  # it has ended
                continue


def _family(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _family(int(child))


def _usage(pid: int) -> tuple[float, int]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS, int(peak.split()[1])


@dataclass(frozen=True)
class Found:
    """What was seen of one pipeline: its release, the limit, and a second plan."""

    release: Took
    limit: float
    second: float


def measured(name: str, n: int) -> Found:
    """Run a pipeline up to its release, in a folder of its own, and print what is seen.

    It is planned twice before that: a release without a ledger forbids more.
    """
    with TemporaryDirectory() as text:
        folder = Path(text)
        in_a_process("write", folder, n=n)
        print(f"{name}, {n:,} clients")
        *before, stage = RELEASES[name]
        _say("first plan", in_a_process("plan", folder, name), n)
        for each in before:
            _say(each, in_a_process("step", folder, name, each), n)
        second = _say("second plan", in_a_process("plan", folder, name), n)
        release = _say(stage, in_a_process("release", folder, name, stage), n)
        limit = _say("limit", in_a_process("limit", folder, name, stage), n)
    return Found(release, limit.seconds, second.seconds)


def joint(n: int) -> float:
    """Return the MiB of the largest process of all steps of arm ``joint``."""
    with TemporaryDirectory() as text:
        folder = Path(text)
        in_a_process("write", folder, n=n)
        print(f"joint, {n:,} clients, with the ledger")
        took = [in_a_process("step", folder, "joint", stage) for stage in JOINT]
        for stage, each in zip(JOINT, took, strict=True):
            _say(stage, each, n)
    return max(each.mib for each in took)


def _say(what: str, took: Took, n: int) -> Took:
    each = 1e6 * took.seconds / n
    clock = f"{took.seconds:8.1f} s {took.cpu:8.1f} s CPU {each:8.2f} us a client"
    print(f"  {what:12}{clock} {took.mib:6.0f} MiB", flush=True)
    return took


def main() -> int:
    """Measure, or do one task of a measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--task", choices=["write", *TASKS], help=argparse.SUPPRESS)
    for name in ("--folder", "--pipeline", "--stage"):
        parser.add_argument(name, default="", help=argparse.SUPPRESS)
    parser.add_argument("--clients", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task is None:
        return compared(
            *(1_000_000, 10_000_000) if given.full else (200_000, 1_000_000)
        )
    if given.task == "write":
        write(Path(given.folder), given.clients)
        print(0)
    else:
        print(TASKS[given.task](Path(given.folder), given.pipeline, given.stage))
    return 0


TASKS: Final = {
    "plan": task_plan,
    "step": task_step,
    "release": task_release,
    "limit": task_limit,
}


def compared(small: int, large: int) -> int:
    """Measure two sizes, print what was asked for, and return the exit code."""
    ratios, sizes = dict[str, float](), dict[str, float]()
    bounds = {"joint, MiB": 700.0}
    for name in RELEASES:
        one, other = measured(name, small), measured(name, large)
        each = other.release.seconds / large / (one.release.seconds / small)
        ratios[f"{name}, seconds a client"] = each
        ratios[f"{name}, memory"] = other.release.mib / one.release.mib
        ratios[f"{name}, share of the limit"] = other.limit / other.release.seconds
        sizes[f"{name}, s"] = other.release.seconds
        sizes[f"{name}, CPU s"] = other.release.cpu
        sizes[f"{name}, MiB"] = other.release.mib
        sizes[f"{name}, second plan, s"] = other.second
        bounds |= {f"{name}, seconds a client": 1.2, f"{name}, memory": 1.2}
        bounds |= {f"{name}, s": 60, f"{name}, MiB": 1024}
        bounds |= {f"{name}, second plan, s": 5}
    least = {f"{name}, share of the limit": 0.15 for name in ("report", "direct")}
    sizes["joint, MiB"] = joint(1_000_000)
    shares = tuple(name for name in ratios if name.endswith("limit"))
    return record("scale", ratios, sizes=sizes, bounds=bounds, least=least, more=shares)


if __name__ == "__main__":
    sys.exit(main())
