"""Cells of the court, its two halves, and what a table says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

HALVES = ("choosing", "reported")


def seeds(half: str, count: int) -> Iterator[int]:
    """Yield the first ``count`` seeds of a half: even to choose on, odd to report."""
    yield from range(HALVES.index(half), 2 * count, len(HALVES))


@dataclass(frozen=True)
class Cell:
    """Mean errors in % over the repetitions of a law at one budget.

    ``errors`` holds every arm that `auto` may take, the constant classifier as
    "constant" and what no privacy reaches as "clean"; ``auto`` is the error of `auto`,
    ``taken`` the arm that it took (most often), ``spread`` the standard error of
    ``auto - best``.
    """

    law: str
    seed: int
    epsilon: float
    auto: float
    taken: str
    errors: Mapping[str, float]
    spread: float = 0.0

    @property
    def best(self) -> float:
        """The least error of an arm, chosen after the fact: chance flatters it."""
        return min(e for name, e in self.errors.items() if name != "clean")

    @property
    def regret(self) -> float:
        return self.auto - self.best

    def behind(self, name: str) -> float:
        """Return by how many points `auto` errs more than ``name``."""
        return self.auto - self.errors[name]

    def __str__(self) -> str:
        made = " ".join(f"{name} {error:.1f}" for name, error in self.errors.items())
        place = f"{self.law} (seed {self.seed}) epsilon {self.epsilon:.3g}"
        regret = f"regret {self.regret:.1f} ± {self.spread:.1f}"
        return f"{place}: auto {self.auto:.1f} ({self.taken}) {made}; {regret}"


def table(system: str, cells: Iterable[Cell]) -> Iterator[str]:
    """Yield a line for each comparison: mean, 95 %, worst, and cells over a point."""
    cells = list(cells)
    compared = {"the best arm": [cell.regret for cell in cells]}
    for name, words in (("constant", "the constant"), ("clean", "no privacy")):
        compared[words] = [c.behind(name) for c in cells if name in c.errors]
    yield f"{system}, {len(cells)} cells: points behind  mean   95 %  worst  over 1"
    for words, points in compared.items():
        if points:
            high, over = np.quantile(points, 0.95), sum(one > 1 for one in points)
            numbers = f"{np.mean(points):6.2f} {high:6.2f} {max(points):6.2f} {over:5d}"
            yield f"  {words:<32}{numbers}"
