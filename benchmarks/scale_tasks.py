"""What one process of `bench_scale` does, and how long that takes: its task.

It writes the clients and their pipelines, plans, does a step, or does no more than what
bounds a release: words, reading and writing. On standard output it says its seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curvote.base.entropy import SystemEntropy, Words
from curvote.chain.stage import Place
from curvote.messages.message import client_data, message_of
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.plan.step import Step
from curvote.pipeline.run import execution as executing
from curvote.pipeline.run.engines import Engine
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store.artifacts import Artifact, commit
from curvote.wire.task import Task

D: Final = 6
ROWS: Final = 1 << 16
WORKERS: Final = 2
FEW: Final = 2000


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
    text = as_yaml({"pipelines": pipelines(n)})
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
    configured = PipelinesFile(Project(folder)).configure_pipeline(name)
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
    executing.execute_step(Project(folder), step, engine=engine)
    return time.perf_counter() - start


def task_release(folder: Path, name: str, stage: str) -> float:
    """Do a release without the ledger: nobody is counted in these folders."""
    executing.release_step = _unledgered  # type: ignore[attr-defined]
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
    task, counted = Task.from_json(made.metadata["task"]), _Counted()
    some = read.shard("clients", place, 0, ("curve", "label"))
    n = len(some["label"])
    judge = np.zeros(n, dtype=np.int64) if task.candidates else None
    known = client_data(task, some["curve"], some["label"], judge)
    message_of(task).draw(task, known, counted)
    return counted.n / n + 2


class _Counted(SystemEntropy):
    """The operating system's words, counted."""

    n = 0

    def words(self, n: int) -> Words:
        """Return fresh words."""
        self.n += n
        return super().words(n)


TASKS: Final[dict[str, Callable[[Path, str, str], float]]] = {
    "plan": task_plan,
    "step": task_step,
    "release": task_release,
    "limit": task_limit,
}


def main() -> int:
    """Do one task; print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=["write", *TASKS], required=True)
    for name in ("--folder", "--pipeline", "--stage"):
        parser.add_argument(name, default="")
    parser.add_argument("--clients", type=int)
    given = parser.parse_args()
    if given.task == "write":
        write(Path(given.folder), given.clients)
        print(0)
    else:
        print(TASKS[given.task](Path(given.folder), given.pipeline, given.stage))
    return 0


if __name__ == "__main__":
    sys.exit(main())
