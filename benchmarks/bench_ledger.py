"""The ledger: a million clients reserved and confirmed, then once more under a cap.

Run with ``python -m benchmarks.bench_ledger``; one process, a file in a temporary
folder. Fails when a release takes more than 10 seconds or the ledger is not sound.
``--full``: ten million, 90 s a release and 1 GiB, without the full check; opening it
again takes 0.2 s in both.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.history import record
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.ledger.book import Ledger

EACH, CAP = Budget(0.5, 5e-7), Budget(1.0, 1e-6)  # room for two releases
OPENING_SECONDS, MOST_MIB = 0.2, 1024.0
Value = TypeVar("Value")


@dataclass(frozen=True)
class Size:
    """How many clients, and how long a release of all of them may take."""

    clients: int
    seconds: float


USUAL, FULL = Size(1_000_000, 10.0), Size(10_000_000, 90.0)


def timed(call: Callable[[], Value]) -> tuple[float, Value]:
    """Return the seconds that a call takes, waiting for the disk or others included."""
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def chunks(ids: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the ids as a stream would."""
    yield from np.array_split(ids, 100)


def release(ledger: Ledger, name: str, ids: NDArray[np.int64]) -> None:
    ledger.reserve(name, chunks(ids), EACH, population="bench", facts={})
    ledger.confirm(name, place=name, digest=name)


def is_refused(ledger: Ledger, ids: NDArray[np.int64]) -> bool:
    try:
        release(ledger, "third", ids)
    except UserError:
        return True
    return False


def opening(path: Path) -> tuple[float, float]:
    """Return the seconds of an opening that checks all pages, and of the next one."""
    time.sleep(3)  # a check right after a write is not written down
    first, _ = timed(lambda: Ledger(path).close())
    return first, min(timed(lambda: Ledger(path).close())[0] for _ in range(3))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    size = FULL if parser.parse_args().full else USUAL
    ids = 10 * np.random.default_rng(1).permutation(size.clients) + 1_000_003
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        with Ledger(path) as ledger:
            ledger.set_cap("bench", CAP)
            first, _ = timed(lambda: release(ledger, "first", ids))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            second, _ = timed(lambda: release(ledger, "second", ids))
            third, refused = timed(lambda: is_refused(ledger, ids))
            peak = max(peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            problems = [] if size is FULL else ledger.problems()
        checked, opened = opening(path)
        mib = path.stat().st_size / 2**20
    print(f"{size.clients:,} clients in random order, under a cap for two releases")
    print(f"first release    {first:6.2f} s, reserved and confirmed")
    print(f"second release   {second:6.2f} s, the same clients")
    print(f"third release    {third:6.2f} s, refused: {refused}")
    print(f"opening          {checked:6.2f} s with all pages checked, {mib:.0f} MiB")
    print(f"opening again    {opened:6.2f} s")
    print(f"processor        {time.process_time():6.2f} s in all")
    print(f"{len(problems)} problems; peak {peak:.0f} MiB")
    missed = record(
        "ledger",
        {"second release / first": second / first},
        sizes={
            "release, s": max(first, second),
            "us a client": 1e6 * max(first, second) / size.clients,
            "opening again, s": opened,
            "peak, MiB": peak,
        },
        bounds={
            "release, s": size.seconds,
            "opening again, s": OPENING_SECONDS,
            "peak, MiB": MOST_MIB,
        },
    )
    return 0 if not missed and refused and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
