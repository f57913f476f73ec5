"""One digest of all tables, whatever computes them: engines, workers and block sizes.

`simulated` with 50 replicates, and a production release of 300,000 clients under words
that can be had again, on local, threads and dask with 1 to 3 workers and three block
sizes: nine runs each, in which every two of these meet; ``--full`` takes all 27. Then
with two workers killed by ``kill -9``, and with the server's side on an object store on
loopback. Fails where one byte differs, or a worker of dask takes over 500 MiB.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, Final

import numpy as np
import psutil
from joblib.externals.loky import get_reusable_executor

from benchmarks import scale_tasks
from benchmarks.history import record
from curvote.base.entropy import Entropy, SeededEntropy
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from curvote.pipeline.run.engines import Engine
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import Plan, make_plan
from curvote.pipeline.store.artifacts import artifact
from tests import object_store

ENGINES: Final = ("local", "threads", "dask")
WORKERS: Final = (1, 2, 3)
BLOCKS: Final = (3, 10, 25)
REPLICATES: Final = 50
CLIENTS: Final = 300_000
LIMIT: Final = 500  # MiB a worker of dask
KILLS: Final = 2
SIMULATED = Path(__file__).parents[1] / "pipelines.yaml"


@dataclass
class Watched:
    """Looks at the worker processes meanwhile: how large they get, how many die."""

    kills: int = 0
    peak: int = 0
    _over: Event = field(default_factory=Event)
    _done: int = 0

    def progress(self, _done: int, _of: int) -> None:
        """Kill a worker after the second block and after the sixth, if asked to."""
        self._done += 1
        if self.kills < KILLS and self._done in {3, 7}:
            for worker in list(workers())[:1]:
                os.kill(worker.pid, signal.SIGKILL)
                self.kills += 1

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Note the largest worker, ten times a second."""
        thread = Thread(target=self._look)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            for worker in workers():
                try:
                    self.peak = max(self.peak, worker.memory_info().rss >> 20)
                except psutil.Error:
                    continue


def workers() -> Iterator[psutil.Process]:
    """Yield the processes of loky and of dask that compute."""
    for child in psutil.Process().children(recursive=True):
        try:
            words = " ".join(child.cmdline())
        except psutil.Error:
            continue
        own = "loky" in words or "spawn_main" in words
        if own and "resource_tracker" not in words:
            yield child


def recorded(purpose: str, number: int) -> Entropy:
    """Return words that can be had again, for a release of nobody's data."""
    return SeededEntropy(np.random.SeedSequence([zlib.crc32(purpose.encode()), number]))


def planned(project: Project, name: str) -> Plan:
    """Return the plan of a pipeline."""
    replicates = REPLICATES if name == "simulated" else None
    configured = PipelinesFile(project).configure_pipeline(name, replicates=replicates)
    return make_plan(project, configured, fetch=True)


def done(
    project: Project, name: str, engine: Engine, block: int, kill: bool = False
) -> tuple[str, float, Watched]:
    """Run a pipeline; return the digest of all tables, the seconds, what was seen."""
    plan, seen = planned(project, name), Watched(kills=0 if kill else KILLS)
    start = time.perf_counter()
    with engine, seen.looking():
        for step in plan.steps_to_run():
            given: dict[str, Any] = {"words": recorded, "progress": seen.progress}
            execute_step(project, step, engine=engine, block=block, **given)
    took = time.perf_counter() - start
    tables = [
        (step.stage.name, step.key, table, entry["sha256"])
        for step in plan.steps
        for table, entry in artifact(project, step.stage.name, step.key)
        .manifest["tables"]
        .items()
    ]
    return hashlib.sha256(repr(sorted(tables)).encode()).hexdigest()[:16], took, seen


def simulated(folder: Path, artifacts: str | None = None) -> Project:
    """Write a project with the pipeline `simulated`."""
    pipelines = parse_value(SIMULATED.read_text())["pipelines"]
    file: dict[str, Any] = {"pipelines": {"simulated": pipelines["simulated"]}}
    return written(folder, file, artifacts)


def written(folder: Path, file: dict[str, Any], artifacts: str | None) -> Project:
    """Write the file of a project, its server's side on an object store if named."""
    folder.mkdir(exist_ok=True)
    runtime = {"runtime": {"artifacts": artifacts}} if artifacts else {}
    (folder / "pipelines.yaml").write_text(as_yaml(file | runtime))
    return Project(folder)


def released(base: Path, folder: Path, artifacts: str | None = None) -> Project:
    """Return a copy of a project whose clients are read, and nothing is released."""
    shutil.copytree(base, folder, copy_function=os.link)
    file = parse_value((base / "pipelines.yaml").read_text())
    (folder / "pipelines.yaml").unlink()
    return written(folder, file, artifacts)


def encoded(base: Path) -> Path:
    """Write 300,000 clients and read them: what comes before a release."""
    base.mkdir()
    scale_tasks.write(base, CLIENTS)
    for step in planned(Project(base), "report").steps:
        if step.stage.name in {"ingest", "project"}:
            execute_step(Project(base), step)
    return base


def runs(full: bool) -> list[tuple[str, int, int]]:
    """Return engines, workers and block sizes: all, or each two of them together."""
    if full:
        return list(product(ENGINES, WORKERS, BLOCKS))
    return [
        (engine, count, BLOCKS[(i + j) % len(BLOCKS)])
        for i, engine in enumerate(ENGINES)
        for j, count in enumerate(WORKERS)
    ]


class Compared:
    """The runs of one pipeline, held against the first of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.digests: dict[str, str] = {}
        self.seconds: dict[str, list[float]] = {}
        self.peak = 0

    def run(
        self, project: Project, engine: str, count: int, block: int, how: str = ""
    ) -> None:
        """Run it one way; say how long it took and what came out."""
        memory = LIMIT << 20 if engine == "dask" else None
        own = Engine(engine, count, memory=memory)
        digest, took, seen = done(project, self.name, own, block, "killed" in how)
        label = f"{self.name:9} {engine:7} {count} workers, blocks of {block:2} {how}"
        killed = f", {seen.kills} killed" if "killed" in how else ""
        print(f"{label:52} {digest} {took:6.1f} s, {seen.peak} MiB{killed}", flush=True)
        if "killed" in how and seen.kills < KILLS:
            raise SystemExit(f"only {seen.kills} workers were killed")
        self.digests[label] = digest
        if not how:
            self.seconds.setdefault(engine, []).append(took)
        if engine == "dask":
            self.peak = max(self.peak, seen.peak)
        get_reusable_executor().shutdown()  # or it would count as the next one's
        shutil.rmtree(project.root)


def ways(full: bool) -> Iterator[tuple[str, int, int, str]]:
    """Yield all ways to run: engine, workers, block size, what is done to it."""
    for way in runs(full):
        yield (*way, "")
    for engine in ("local", "dask"):
        yield engine, 2, 3, "two killed"
    yield "local", 2, 10, "on s3"


def main() -> int:
    """Run all ways of both pipelines and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="all 27 ways")
    full = parser.parse_args().full
    os.environ |= object_store.KEYS
    compared = [Compared("simulated"), Compared("report")]
    with TemporaryDirectory() as name, object_store.started() as address:
        os.environ["AWS_ENDPOINT_URL"] = address
        object_store.bucket(address)
        root = Path(name)
        base = encoded(root / "base")
        for engine, count, block, how in ways(full):
            place = object_store.ROOT if how == "on s3" else None
            for each in compared:
                folder = root / "run"
                made = (
                    simulated(folder, place)
                    if each.name == "simulated"
                    else released(base, folder, place)
                )
                each.run(made, engine, count, block, how)
    return told(compared)


def told(compared: list[Compared]) -> int:
    """Say whether all digests are one, and record the rest."""
    differ = [one.name for one in compared if len({*one.digests.values()}) > 1]
    found = f"no: {', '.join(differ)}" if differ else "yes"
    print(f"one digest of each pipeline: {found}")
    ratios = {
        f"{one.name}: {engine} / local": sum(one.seconds[engine])
        / sum(one.seconds["local"])
        for one in compared
        for engine in ENGINES[1:]
    }
    peak = {"worker of dask, MiB": max(one.peak for one in compared)}
    failed = record(
        "engines", ratios, sizes=peak, bounds={"worker of dask, MiB": LIMIT}
    )
    return 1 if differ else failed


if __name__ == "__main__":
    sys.exit(main())
