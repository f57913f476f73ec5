"""What a run costs beside its numbers: orchestration, storage, records.

Run with ``python -m benchmarks.bench_overhead [--replicates 200 500] [--runs 1000]
[--repeats 5]`` (an hour; with ``--repeats 1`` some ten minutes). CPU seconds of whole
process trees, servers and workers too, each the median of its repeats:

- `simulated` by the command line, over its stages' plain functions on tables in memory
  (nothing is stored yet, but Prefect's and MLflow's databases are there): with one
  worker, which is bounded, and with one for each processor;
- a `demo` that reuses everything, over the import of prefect and mlflow.sklearn: alone,
  and while `curvote serve` holds a server;
- `--help`, `list`, `status` and `plan demo`, over the same;
- `status` with many runs on record, over that with ten.

The seconds stand beside the ratios, and so does what they go on, by its cause
(`benchmarks.causes`): of the reused `demo`, and of `simulated` with 100 replicates and
one worker. Fails where something is over its bound.
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
from dataclasses import dataclass, field, replace
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
WHOLE = {200: 1.9, 500: 1.6}
STATUS = 1.5
# Seconds that a command may take.
SECONDS = {"--help": 0.25, "list": 0.5, "status": 0.5, "plan demo": 0.8}
REUSED, SERVED = 3.0, 2.0
FEW, REPEATS, CAUSE_REPLICATES = 10, 5, "100"


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


def whole_run(replicates: int) -> dict[str, float]:
    """Return the ratios of whole runs of `simulated` to its plain functions.

    With one worker, as the functions have, and with one for each processor, which share
    what a core has and so take more of its seconds in fewer of the clock's.
    """
    number, ratios, functions = str(replicates), {}, 0.0
    for workers in (["--workers", "1"], []):
        with TemporaryDirectory() as name:
            folder = project_in(Path(name), "simulated")
            if not functions:
                plain = [sys.executable, "-m", "benchmarks.plain_stages", name]
                functions = float(cpu([*plain, "simulated", number], folder)[1])
            run = [*CURVOTE, "run", "simulated", *workers, "--replicates"]
            cpu([*run, "2"], folder)  # makes the databases, once in a project's life
            whole, _ = cpu([*run, number], folder)
        words = "one worker" if workers else "workers"
        print(f"simulated, {number}, {words}: {whole:.1f} s, of {functions:.1f} s")
        ratios[f"whole run / functions, {number}, {words}"] = whole / functions
    return ratios


@dataclass
class Commands:
    """Seconds of commands by name, and their ratios to the imports beside each."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    ratios: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, name: str, words: str, folder: Path) -> None:
        """Measure a command and the imports, one after the other, five times."""
        for _ in range(REPEATS):
            took, _ = cpu([*CURVOTE, *words.split()], folder)
            imports, _ = cpu(IMPORT, folder)
            self.seconds.setdefault(name, []).append(took)
            self.ratios.setdefault(f"{name} / imports", []).append(took / imports)
        print(f"{name}: {median(self.seconds[name]):.2f} s", flush=True)


def small_commands() -> tuple[Commands, dict[str, float]]:
    """Return what small commands take, and the causes of a reused `demo`."""
    commands = Commands()
    with TemporaryDirectory() as name:
        folder = project_in(Path(name), "demo")
        cpu([*CURVOTE, "demo"], folder)
        for words in SECONDS:
            commands.measure(words, words, folder)
        commands.measure("reused demo", "demo", folder)
        causes = causes_of("demo", folder)
        with serving(folder):
            commands.measure("reused demo, served", "demo", folder)
    return commands, causes


def causes_of(words: str, folder: Path) -> dict[str, float]:
    """Return the seconds of a command by cause."""
    command = [sys.executable, "-m", "benchmarks.causes", *words.split()]
    causes: dict[str, float] = json.loads(cpu(command, folder)[1].splitlines()[-1])
    print(f"{words}, by cause: {causes}", flush=True)
    return {f"{words}: {cause}, s": seconds for cause, seconds in causes.items()}


def run_causes() -> dict[str, float]:
    """Return the seconds of a new run of `simulated` by cause, with one worker."""
    with TemporaryDirectory() as name:
        folder = project_in(Path(name), "simulated")
        run = "run simulated --workers 1 --replicates"
        cpu([*CURVOTE, *run.split(), "2"], folder)
        return causes_of(f"{run} {CAUSE_REPLICATES}", folder)


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
    given.add_argument("--repeats", type=int, default=REPEATS, help="of whole runs")
    asked = given.parse_args()
    commands, causes = small_commands()
    ratios = commands.ratios | {"status, many runs / few": status(asked.runs)}
    bounds = SECONDS | {"reused demo": REUSED, "reused demo, served": SERVED}
    bounds["status, many runs / few"] = STATUS
    for replicates in asked.replicates:
        runs = [whole_run(replicates) for _ in range(asked.repeats)]
        ratios |= {name: [run[name] for run in runs] for name in runs[0]}
        if replicates in WHOLE:
            bounds[next(iter(runs[0]))] = WHOLE[replicates]
    sizes = commands.seconds | causes | run_causes()
    return record("overhead", ratios, sizes=sizes, bounds=bounds)


if __name__ == "__main__":
    sys.exit(main())
