"""What a run costs beside its numbers: orchestration, storage, records.

Run with ``python -m benchmarks.bench_overhead [--replicates 200 500] [--runs 1000]``
(some ten minutes). CPU seconds of whole process trees, servers and workers too:

- `simulated` by the command line, over its stages' plain functions on tables in memory
  (nothing is stored yet, but Prefect's and MLflow's databases are there);
- a `demo` that reuses everything, over the import of prefect and mlflow.sklearn: with a
  server of its own, and with the one that `curvote serve` holds;
- `status` with many runs on record, over that with ten.

Fails where one is over its bound.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.history import record
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from curvote.pipeline.store import records

ROOT = Path(__file__).resolve().parents[1]
CURVOTE = [sys.executable, "-m", "curvote.cli"]
IMPORT = [sys.executable, "-c", "import prefect, mlflow.sklearn"]
# Whoever outlives its parent becomes this process's child, and is waited for.
_SUBREAPER = 36
# What a whole run may take, by replicates; and the other bounds.
WHOLE = {200: 3.2, 500: 2.6}
REUSED, SERVED, STATUS = 3.8, 2.5, 1.5
FEW, REPEATS = 10, 3


def cpu(command: Sequence[str], folder: Path) -> tuple[float, str]:
    """Return the CPU seconds of a command with all its processes, and what it said."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        os._exit(_measured(command, folder, write))
    os.close(write)
    with os.fdopen(read, "rb") as told:
        text = told.read().decode()
    if os.waitpid(child, 0)[1]:
        raise SystemExit(f"{' '.join(command)} failed:\n{text}")
    seconds, _, said = text.rpartition("\n")[2], "", text.rpartition("\n")[0]
    return float(seconds), said


def _measured(command: Sequence[str], folder: Path, to: int) -> int:
    """Do the command, wait for every process it leaves, and tell what they took."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, check=False
    )
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.write(to, done.stdout + f"\n{used.ru_utime + used.ru_stime}".encode())
    return done.returncode


def project_in(folder: Path, *names: str) -> Path:
    """Write a project with some pipelines of curvote's own; return its folder."""
    own = parse_value((ROOT / "pipelines.yaml").read_text())
    some = {name: own["pipelines"][name] for name in names}
    never = {"cron": "0 0 1 1 *", "timezone": "UTC"}
    some[names[0]] = some[names[0]] | {"schedule": never}
    text = as_yaml(own | {"pipelines": some})
    (folder / "pipelines.yaml").write_text(text)
    return folder


def whole_run(replicates: int) -> float:
    """Return the ratio of a whole run of `simulated` to its plain functions."""
    with TemporaryDirectory() as name:
        folder = project_in(Path(name), "simulated")
        number = str(replicates)
        plain = [sys.executable, "-m", "benchmarks.plain_stages", name, "simulated"]
        functions = float(cpu([*plain, number], folder)[1])
        run = [*CURVOTE, "run", "simulated", "--replicates"]
        cpu([*run, "2"], folder)  # makes the databases, once in a project's life
        whole, _ = cpu([*run, number], folder)
    print(f"simulated, {number}: {whole:.1f} s, functions {functions:.1f} s")
    return whole / functions


def reused() -> tuple[list[float], list[float]]:
    """Return the ratios of a reused `demo`, alone and while `serve` holds a server."""
    with TemporaryDirectory() as name:
        folder = project_in(Path(name), "demo")
        cpu([*CURVOTE, "demo"], folder)
        alone = [_reused(folder) for _ in range(REPEATS)]
        with serving(folder):
            served = [_reused(folder) for _ in range(REPEATS)]
    return alone, served


def _reused(folder: Path) -> float:
    imports, demo = (cpu(each, folder)[0] for each in (IMPORT, [*CURVOTE, "demo"]))
    print(f"reused demo: {demo:.2f} s, imports {imports:.2f} s", flush=True)
    return demo / imports


@contextmanager
def serving(folder: Path) -> Iterator[None]:
    """Hold the server of a project as `curvote serve` does."""
    process = subprocess.Popen(
        [*CURVOTE, "serve"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(1)
        if process.stdout is None or not process.stdout.readline():
            raise SystemExit("curvote serve did not start")
        time.sleep(20)  # it deploys the pipelines, then waits
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def status(runs: int) -> list[float]:
    """Return the ratios of `status` with ``runs`` runs on record to that with ten."""
    with TemporaryDirectory() as name:
        folder = project_in(Path(name), "demo")
        cpu([*CURVOTE, "demo"], folder)
        few = _with(folder, FEW)
        many = _with(folder, runs)
    print(
        f"status: {median(few):.2f} s with {FEW} runs, {median(many):.2f} with {runs}"
    )
    return [after / before for before, after in zip(few, many, strict=True)]


def _with(folder: Path, runs: int) -> list[float]:
    project = Project(folder)
    known = records.completed_run(project, "demo")
    for number in range(len(records.load_records(project)), runs):
        records.save_record(project, replace(known, id=f"{known.id}-{number:04}"))
    asked = [*CURVOTE, "status", "--json"]
    took = [cpu(asked, folder) for _ in range(REPEATS + 1)]
    json.loads(took[-1][1])
    return [seconds for seconds, _ in took[1:]]  # the first one may write an index


def main() -> int:
    """Measure, print and hold against the bounds."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--replicates", type=int, nargs="*", default=[*WHOLE])
    given.add_argument("--runs", type=int, default=1000)
    asked = given.parse_args()
    whole = {f"whole run / functions, {r}": whole_run(r) for r in asked.replicates}
    alone, served = reused()
    few = {
        "reused demo / imports": alone,
        "reused demo / imports, served": served,
        "status, many runs / few": status(asked.runs),
    }
    bounds = dict(zip(few, (REUSED, SERVED, STATUS), strict=True))
    for replicates in asked.replicates:
        if replicates in WHOLE:
            bounds[f"whole run / functions, {replicates}"] = WHOLE[replicates]
    return record("overhead", whole | few, bounds=bounds)


if __name__ == "__main__":
    sys.exit(main())
