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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Final

from benchmarks.history import record

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


def in_a_process(
    task: str, folder: Path, name: str = "", stage: str = "", n: int = 0
) -> Took:
    """Return what a task took, in a process of its own."""
    words = ["--task", task, "--folder", str(folder), "--clients", str(n)]
    words += ["--pipeline", name, "--stage", stage]
    command = [sys.executable, "-m", "benchmarks.scale_tasks", *words]
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


def main() -> int:
    """Compare two sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    return compared(*(1_000_000, 10_000_000) if full else (200_000, 1_000_000))


if __name__ == "__main__":
    sys.exit(main())
