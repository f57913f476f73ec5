"""`auto` of each system on laws that nothing was chosen on (`benchmarks.court`).

Run with ``python -m benchmarks.bench_court [--quick] [--only SYSTEM] [--choosing]``.
``--choosing`` runs the other half instead, on which constants may be chosen.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

import numpy as np

from benchmarks.court.cells import HALVES, table
from benchmarks.history import record

# The most that each may show: mean regret, worst regret, in points.
TARGETS = {"clients": (0.8, 5.0), "hospitals": (1.5, 5.0), "labels": (1.0, 4.0)}
# Behind the best of all arms; these two are taken by name, never by `auto`.
TARGETS |= {"volunteers": (0.8, 5.0), "pilot": (0.8, 5.0)}
PLACES = {"pilot": "volunteers:pilots"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--choosing", action="store_true")
    parser.add_argument("--only", choices=TARGETS)
    given = parser.parse_args()
    half = HALVES[0 if given.choosing else 1]
    sizes, fine = {}, True
    for system in [given.only] if given.only else TARGETS:
        module, _, function = PLACES.get(system, f"{system}:cells").partition(":")
        court = getattr(import_module(f"benchmarks.court.{module}"), function)
        cells = []
        for cell in court(half, quick=given.quick):
            print(cell, flush=True)
            cells.append(cell)
        print(*table(system, cells), sep="\n", flush=True)
        regrets = [cell.regret for cell in cells]
        mean, worst = float(np.mean(regrets)), max(regrets)
        sizes |= {f"{system}, mean regret": mean, f"{system}, worst regret": worst}
        fine = fine and mean <= TARGETS[system][0] and worst <= TARGETS[system][1]
    print(f"targets {TARGETS}: {fine}")
    record("court", {}, sizes=sizes)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
