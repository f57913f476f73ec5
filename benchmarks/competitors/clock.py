"""The tasks, the clock and the rows of the sampler benchmark, for every environment.

Each library's script runs in an environment of its own, so this file, which all of them
import, needs the standard library only.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

EPSILON = 1.0
CLASSES = 100
TASKS = {
    "Laplace": 1_000_000,
    "binary response": 1_000_000,
    "unary symmetric": 100_000,
    "unary optimised": 100_000,
    "subset selection": 100_000,
}


@dataclass(frozen=True)
class Row:
    """The ``seconds`` that ``library`` needs for ``n`` values of a task.

    ``exact`` says that no probability is rounded by floating point on the way.
    """

    task: str
    library: str
    call: str
    exact: bool
    entropy: str
    n: int
    seconds: float

    @property
    def scaled(self) -> float:
        """The seconds for the whole task."""
        return self.seconds * TASKS[self.task] / self.n


def median_seconds(call: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def answer(rows: list[Row]) -> None:
    """Print what a competitor's script measured, for the driver."""
    print(json.dumps([asdict(row) for row in rows]))
