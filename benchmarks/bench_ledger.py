"""The ledger: a million clients reserved and confirmed, then once more under a cap.

Run with ``python -m benchmarks.bench_ledger``; one process, a file in a temporary
folder. Fails when a release takes more than 10 seconds or the ledger is not sound.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np

from benchmarks.history import record
from curvote.client.ledger import Ledger
from curvote.errors import UserError
from curvote.privacy import Budget

CLIENTS = 1_000_000
IDS = np.random.default_rng(1).permutation(10 * CLIENTS)[:CLIENTS]
EACH, CAP = Budget(0.5, 5e-7), Budget(1.0, 1e-6)  # room for two releases
TARGET_SECONDS = 10.0
Value = TypeVar("Value")


def timed(call: Callable[[], Value]) -> tuple[float, Value]:
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def release(ledger: Ledger, name: str) -> None:
    ledger.reserve(name, IDS, EACH, population="bench", facts={})
    ledger.confirm(name, place=name, digest=name)


def is_refused(ledger: Ledger, name: str) -> bool:
    try:
        release(ledger, name)
    except UserError:
        return True
    return False


def main() -> int:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        with Ledger(path) as ledger:
            ledger.set_up("bench", CAP)
            first, _ = timed(lambda: release(ledger, "first"))
            second, _ = timed(lambda: release(ledger, "second"))
            third, refused = timed(lambda: is_refused(ledger, "third"))
            totals, _ = timed(lambda: ledger.spent("bench"))
            check, problems = timed(ledger.problems)
        size = path.stat().st_size / 2**20
        opening, _ = timed(lambda: Ledger(path).close())
    print(f"{CLIENTS:,} clients in random order, under a cap for two releases")
    print(f"first release    {first:6.2f} s, reserved and confirmed")
    print(f"second release   {second:6.2f} s, the same clients")
    print(f"third release    {third:6.2f} s, refused: {refused}")
    print(f"totals of all    {totals:6.2f} s")
    print(f"full check       {check:6.2f} s, {len(problems)} problems")
    print(f"opening          {opening:6.2f} s, {size:.0f} MiB")
    missed = record(
        "ledger",
        {"second release / first": second / first},
        sizes={"release, s": max(first, second), "opening, s": opening},
        bounds={"release, s": TARGET_SECONDS},
    )
    return 0 if not missed and refused and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
