"""Time curvote's exact samplers beside those of other libraries, in one run.

A competitor is a script in ``competitors/`` that runs in its own environment, which
``make bench`` builds from ``requirements-NAME.txt``. One that is not installed or fails
is named and left out. Samples smaller than the task are scaled to it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from competitors.clock import CLASSES, EPSILON, TASKS, Row, median_seconds

from benchmarks.history import record
from curvote.base.entropy import SystemEntropy
from curvote.mechanisms import make

HERE = Path(__file__).resolve().parent
TITLES = ("task", "library", "sampler", "exact", "entropy", "measured")
TITLES += ("seconds", "ratio")
TARGET_RATIO, TARGET_SECONDS = 10, 0.5


def own_rows() -> list[Row]:
    entropy = SystemEntropy()

    def row(task: str, name: str, values: object, **params: int) -> Row:
        mechanism = make(name, epsilon=EPSILON, **params)
        seconds = median_seconds(lambda: mechanism.randomize(values, entropy), 5)
        return Row(task, "curvote", name, True, "OS", TASKS[task], seconds)

    labels = np.arange(TASKS["unary symmetric"]) % CLASSES
    signs = np.where(np.arange(TASKS["binary response"]) % 2, 1.0, -1.0)
    return [
        row("Laplace", "laplace", np.zeros(TASKS["Laplace"])),
        row("binary response", "binary_rr", signs),
        row("unary symmetric", "unary_symmetric", labels, n_classes=CLASSES),
        row("unary optimised", "unary_optimised", labels, n_classes=CLASSES),
        row("subset selection", "subset_selection", labels, n_classes=CLASSES),
    ]


def competitors() -> list[str]:
    files = HERE.glob("requirements-*.txt")
    return sorted(path.stem.removeprefix("requirements-") for path in files)


def ask(name: str) -> list[Row]:
    """Run a competitor's script in its environment; say so where there is nothing."""
    environment = HERE.parent / f".venv-bench-{name}"
    if not (environment / ".installed").exists():
        print(f"{name}: left out, not installed; `make bench` installs it")
        return []
    command = [environment / "bin" / "python", "-W", "ignore"]
    done = subprocess.run(
        [*command, "-m", f"competitors.{name}"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().rpartition("\n")[2]
        print(f"{name}: left out, it failed: {said}")
        return []
    return [Row(**row) for row in json.loads(done.stdout)]


def line(*cells: object) -> None:
    widths = (16, 16, 25, 6, 9)
    words = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False)]
    numbers = [f"{cell:>11}" for cell in cells[len(widths) :]]
    print("".join(words + numbers))


def print_task(task: str, rows: list[Row], libraries: list[str]) -> None:
    own = curvote(rows).scaled
    for row in sorted(rows, key=lambda row: row.scaled):
        exact = "yes" if row.exact else "no"
        seconds, ratio = f"{row.scaled:.3f}", f"{row.scaled / own:.1f}x"
        measured = f"{row.n:,}"
        line(task, row.library, row.call, exact, row.entropy, measured, seconds, ratio)
    for library in libraries:
        if all(row.library != library for row in rows):
            line(task, library, "n/a")


def curvote(rows: list[Row]) -> Row:
    return next(row for row in rows if row.library == "curvote")


def against(rows: list[Row]) -> float | None:
    """Return how often curvote's time the best exact rival takes, None: no rival."""
    own = curvote(rows)
    rivals = [row.scaled for row in rows if row.exact and row is not own]
    return min(rivals) / own.scaled if rivals else None


def main() -> int:
    rows = own_rows()
    for name in competitors():
        rows += ask(name)
    libraries = list(dict.fromkeys(row.library for row in rows))
    by_task = {task: [row for row in rows if row.task == task] for task in TASKS}
    print(f"curvote: exact samplers with operating-system entropy, epsilon {EPSILON:g}")
    sizes = ", ".join(f"{task} {size:,}" for task, size in TASKS.items())
    print(f"values of a task: {sizes}; {CLASSES} classes")
    print("seconds: scaled to the whole task from as many values as were measured")
    line(*TITLES)
    for task, some in by_task.items():
        print_task(task, some, libraries)
    times = {f"{task}: times": against(some) for task, some in by_task.items()}
    ratios = {what: ratio for what, ratio in times.items() if ratio is not None}
    return record(
        "samplers",
        ratios,
        sizes={"Laplace, s": curvote(by_task["Laplace"]).seconds},
        bounds={"Laplace, s": TARGET_SECONDS},
        least=dict.fromkeys(ratios, TARGET_RATIO),
    )


if __name__ == "__main__":
    sys.exit(main())
