"""A round of `direct`, arm `joint`, kept as sums: up to a hundred million clients.

Run with ``python -m benchmarks.bench_sums [--clients 10_000_000] [--full]``; ``--full``
is 100 million (some ten minutes of one core). Six numbers, epsilon 1, noise by the
operating system. Two processes draw the messages of parts of 2^20 clients and add them
up; their sums and the places of their invitations go to an intake with a tree, in one
transaction a part. Killed, the same command with the same ``--at FOLDER`` goes on.

Fails where a state is 1 MiB or more, used invitations take over 24 bytes, a process
takes 300 MiB or a client over 1.2 times as long as at a tenth of so many; or where the
classifier of a million is not, bit for bit, that of their rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import sqlite3
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, nullcontext
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.history import record
from curvote.base.entropy import SystemEntropy
from curvote.chain.stage import Columns
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.intake.box import Intake
from curvote.learning.directions import ReportMean
from curvote.learning.sums import MessageSums, SumForm
from curvote.messages.arms import directions_to_params, make_directions
from curvote.messages.message import ClientData, message_of
from curvote.messages.stages import public_metadata
from curvote.systems.direct.stages import decode_total
from curvote.wire.key_tree import InvitationTree
from curvote.wire.task import Task

D, PART, BLOCK, WORKERS = 6, 1 << 20, 1 << 16, 2
VECTORS = make_directions("joint", D, "max_abs", "auto")
TASK = Task(
    Encoding(identity(D), "max_abs", feature_map="rescaled"),
    ("a", "b"),
    1.0,
    "direct",
    "report",
    "privunit",
    params=directions_to_params(VECTORS),
)
KIND = message_of(TASK)


def messages(start: int, end: int) -> Iterator[np.ndarray]:
    """Yield the noised vectors of the clients at these places, a block at a time."""
    for first in range(start, end, BLOCK):
        rng = np.random.default_rng(first)
        n = min(BLOCK, end - first)
        labels = rng.integers(2, size=n)
        z = rng.normal(size=(n, D)) + (labels[:, None] - 0.5) * 0.8
        drawn = KIND.draw(TASK, ClientData(z, z, labels), SystemEntropy())
        yield drawn["direction"]


def sums_of(place: tuple[int, int]) -> tuple[str, float, int]:
    """Return the state of a part, its processor seconds, and this process's peak."""
    started, sums = time.process_time(), MessageSums(KIND.sum_form(TASK))
    for directions in messages(*place):
        sums.add_rows("{}", directions)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return sums.to_text(), time.process_time() - started, peak


def classifier(mean: ReportMean) -> Columns:
    """Return the classifier that a server makes of a mean."""
    return decode_total(mean, public_metadata(TASK))


def same_bits() -> bool:
    """Say whether a million rows and their sums make one classifier to the bit."""
    rows = [*messages(0, 1_000_000)]
    sums = MessageSums(KIND.sum_form(TASK))
    for directions in reversed(rows):
        sums.add_rows("{}", directions[::-1])
    of_sums = classifier(ReportMean.from_sums(sums))
    of_rows = classifier(ReportMean.from_shards(rows, TASK.epsilon))
    return all(of_sums[name].tobytes() == of_rows[name].tobytes() for name in of_sums)


class Round:
    """A round of ``clients`` in the intake of a folder, filled part by part."""

    def __init__(self, folder: Path, clients: int) -> None:
        self.path, self.clients = folder / f"intake-{clients}.sqlite", clients
        self.seconds, self.peak = 0.0, 0
        if not self.path.exists():
            tree = InvitationTree.grow(TASK, clients)
            with Intake(self.path) as intake:
                about = {"pipeline": "sums", "needed": clients, "invitations": tree}
                keep = str(KIND.sum_form(TASK))
                intake.open_round("sums-1", task=TASK, keep=keep, **about)

    def missing(self) -> list[tuple[int, int]]:
        """Return the parts that are not in yet."""
        starts = range(0, self.clients, PART)
        with closing(sqlite3.connect(self.path)) as db:
            present = {
                block * 4096 for (block,) in db.execute("SELECT block FROM marks")
            }
        return [(s, min(s + PART, self.clients)) for s in starts if s not in present]

    def fill(self) -> None:
        """Draw and take in what is missing; count processor seconds and peaks."""
        waiting, form = self.missing(), KIND.sum_form(TASK) or SumForm()
        started = time.process_time()
        with (
            ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool,
            Intake(self.path) as intake,
        ):
            drawn = pool.map(sums_of, waiting)
            for (start, end), (text, used, peak) in zip(waiting, drawn, strict=True):
                # What `Intake.take_batch` does with envelopes that passed its checks.
                with intake._base.writing():  # noqa: SLF001
                    intake._mark_places(1, range(start, end))  # noqa: SLF001
                    part = MessageSums.from_text(form, text)
                    intake._add_sums(1, part)  # noqa: SLF001
                self.seconds += used
                self.peak = max(self.peak, peak)
        self.seconds += time.process_time() - started
        mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.peak = max(self.peak, mine)

    def close(self) -> tuple[Columns, int, float]:
        """Close; return the classifier, the bytes of the state and of a used place."""
        with Intake(self.path) as intake:
            (sums,) = intake.batches("sums-1", intake.close("sums-1")).values()
        if sums.n != self.clients:
            raise SystemExit(f"{sums.n} of {self.clients} are in")
        state = len(sums.to_text())
        used = (self.path.stat().st_size - state) / self.clients
        return classifier(ReportMean.from_sums(sums)), state, used


def measure(folder: Path, clients: int) -> dict[str, float]:
    """Fill and close a round; return what it took."""
    filled = Round(folder, clients)
    whole = len(filled.missing()) * PART >= clients
    filled.fill()
    made, state, used = filled.close()
    figures = {
        "us a client": 1e6 * filled.seconds / clients,
        "state, bytes": float(state),
        "used invitation, bytes": used,
        "peak, MiB": filled.peak / 1024,
    }
    if not whole:
        del figures["us a client"]  # a part of it was drawn by an earlier run
    for name, value in figures.items():
        print(f"{clients:,} clients: {name} {value:,.3f}", flush=True)
    print(f"coef {np.round(made['coef'], 4).tolist()}, n {made['n'].tolist()}")
    return figures


def main() -> int:
    """Measure, print and hold against the bounds."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--clients", type=int, default=10_000_000)
    given.add_argument("--full", action="store_true")
    given.add_argument("--at", type=Path)
    asked = given.parse_args()
    clients = 100_000_000 if asked.full else asked.clients
    os.environ["OMP_NUM_THREADS"] = "1"
    where = nullcontext(str(asked.at)) if asked.at else TemporaryDirectory()
    with where as name:
        Path(name).mkdir(parents=True, exist_ok=True)
        few = measure(Path(name), clients // 10)
        many = measure(Path(name), clients)
    key = "us a client"
    ratios = (
        {"a client, ten times as many": many[key] / few[key]} if key in many else {}
    )
    ratios |= {"classifier differs": float(not same_bits())}
    bounds = {"a client, ten times as many": 1.2, "classifier differs": 0.0}
    bounds |= {"state, bytes": 2.0**20, "used invitation, bytes": 24.0}
    bounds |= {"peak, MiB": 300.0}
    bounds = {name: most for name, most in bounds.items() if name in ratios | many}
    return record("sums", ratios, sizes=many, bounds=bounds)


if __name__ == "__main__":
    sys.exit(main())
