"""Scores of outcomes, learned from draws of a pair that are not judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from curvote.audit.outcomes import Columns, aligned
from curvote.checks import events
from curvote.checks.events import FloatArray, Scores, finite_rows

CELLS = np.linspace(0, 1, 22)[1:-1]  # quantiles at which cells of a column end


@dataclass(frozen=True)
class Scorer:
    """Scores of outcomes, made for a pair by draws that are not judged.

    ``names`` are columns that vary, those that differ most first; ``weights`` make of
    them the direction in which the pair differs; ``tables`` the likelihood ratio of
    all, as if they were independent: edges and log ratios of cells.
    """

    names: tuple[str, ...]
    weights: FloatArray
    tables: tuple[tuple[FloatArray, FloatArray], ...]

    @classmethod
    def learn(cls, first: Columns, second: Columns) -> Scorer:
        """Return the scorer of a pair."""
        first, second = aligned(first, second)
        gaps: dict[str, float] = {}
        for name in first:
            sides = [finite_rows(side[name]) for side in (first, second)]
            if np.ptp(np.concatenate(sides)) > 0:
                spread = math.sqrt(sum(side.var() for side in sides) / 2)
                shift = sides[0].mean() - sides[1].mean()
                gaps[name] = shift / spread if spread > 0 else math.inf
        names = sorted(gaps, key=lambda name: -abs(gaps[name]))
        scale = np.array([min(max(gaps[name], -1e9), 1e9) for name in names])
        tables = []
        for i, name in enumerate(names):
            pooled = finite_rows(np.concatenate([first[name], second[name]]))
            scale[i] /= pooled.std() or 1.0
            edges = np.unique(np.quantile(pooled, CELLS, method="higher"))
            counts = [
                np.bincount(_cells(side[name], edges), minlength=2 * len(edges) + 1)
                for side in (first, second)
            ]
            tables.append((edges, np.log((counts[0] + 1.0) / (counts[1] + 1.0))))
        return cls(tuple(names), scale, tuple(tables))

    def scores(self, columns: Columns) -> Scores:
        """Return the scores of outcomes by name, (n,) each."""
        n = len(next(iter(columns.values())))
        if not self.names:
            return {"difference of any two outcomes": np.zeros(n)}
        side = aligned(columns, dict.fromkeys(self.names, np.empty(0)))[0]
        rows = finite_rows(np.stack([side[name] for name in self.names], axis=1))
        scores = dict(events.number_scores(rows, self.names))
        if len(self.names) == 1:
            del scores["record"]
        by_name = dict(zip(self.names, rows.T, strict=True))
        ordered = sorted(name for name in self.names if name.endswith("]"))
        for a, b in pairwise(ordered[: events.MOST_COLUMNS]):
            scores[f"{b} less {a}"] = by_name[b] - by_name[a]
            scores[f"{b} plus {a}"] = by_name[b] + by_name[a]
        direction, likelihood = np.zeros(n), np.zeros(n)
        for j, (edges, ratios) in enumerate(self.tables):
            direction += self.weights[j] * rows[:, j]
            likelihood += ratios[_cells(rows[:, j], edges)]
        if len(self.names) > 1:
            scores["direction of the difference"] = direction
        return scores | {"likelihood ratio": likelihood}


def _cells(values: FloatArray, edges: FloatArray) -> Any:
    """Return the cell of each value: edges are cells of their own."""
    values = finite_rows(values)
    return np.searchsorted(edges, values, "left") + np.searchsorted(
        edges, values, "right"
    )
