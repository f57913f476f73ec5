"""Comparison of DTK's tuned classifiers with curvote's adaptive ones.

Section 6.1: h in 2^-1..2^-7, the target's weight w in 0, .01, .., 1, sources alike.
What is tested is even on [0, 1]^2 and has the true law of the labels, so that accuracy
is known without drawing any. A pair (h, w) has the mean accuracy of all replicates, and
the best mean counts: nobody could choose it in practice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curvote.base.entropy import SeededEntropy
from curvote.chain.measure import Look
from curvote.data.simulation import posterior_drift
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.papers import reproduction
from curvote.papers import rows as words
from curvote.papers.drawing import (
    PlotLine,
    distinct_values,
    draw_files,
    label_y_axes,
    line_panels,
)
from curvote.papers.dtk.entries import REPRODUCTIONS
from curvote.papers.evidence import Evidence, collect_evidence
from curvote.papers.rows import Row, score_row, select
from curvote.pipeline.config.project import Project
from curvote.pipeline.store.records import RunRecord
from curvote.systems.transfer.method.exact import QueryBatch
from curvote.systems.transfer.method.features import Grids, Histogram
from curvote.systems.transfer.method.forms.kernel import PrintedNoise

Array = NDArray[np.float64]
Table = tuple[Array, Array]  # records (n, 2), and Y - 1/2

WIDTHS = tuple(2.0**-i for i in range(1, 8))
WEIGHTS = np.linspace(0, 1, 101)
UNIT_STEPS = 1 << 20  # steps to what a record moves a sum by
_SIDE = (np.arange(20) + 0.5) / 20
POINTS = np.stack(np.meshgrid(_SIDE, _SIDE, indexing="ij"), axis=-1).reshape(-1, 2)
ETA = posterior_drift.regression(POINTS, 1.0)


class NoisedSum(Protocol):
    """A sum that is noised in coordinates, and its values at `POINTS`."""

    def coordinates(self, cube: Array, signed: Array) -> Array:
        """Return the sum over a server's records, (k,); one moves it by 1."""

    def at_points(self, coordinates: Array) -> Array:
        """Return the values at the points, (q,)."""


class KernelSum:
    """A kernel sum of one bandwidth, by its exact process."""

    def __init__(self, kernel: str, width: float) -> None:
        self._batch = QueryBatch(kernel, POINTS, width)

    def coordinates(self, cube: Array, signed: Array) -> Array:
        """Return the sum in the coordinates of the process."""
        return self._batch.coordinates(cube, signed)

    def at_points(self, coordinates: Array) -> Array:
        """Return the process at the points."""
        return np.asarray(self._batch.basis @ coordinates)


class HistogramSum:
    """A histogram sum with cells of one width."""

    def __init__(self, grid: Grids) -> None:
        self._grid, self._places = grid, grid.places(POINTS)[:, 0]

    def coordinates(self, cube: Array, signed: Array) -> Array:
        """Return the sum in each cell."""
        ill, well = (self._grid.counts(cube[side]) for side in (signed > 0, signed < 0))
        return np.asarray((ill - well) / 2)

    def at_points(self, coordinates: Array) -> Array:
        """Return the value of the cell that each point stands in."""
        return np.asarray(coordinates[self._places])


@dataclass(frozen=True)
class Drift:
    """Servers of section 6.1: a target and ``m`` sources.

    With ``n`` each server has so many.
    """

    gamma: float
    m: int = 1
    n: int | None = None
    total: int | None = None

    def tables(self, replicate: int) -> list[Table]:
        """Return the records of each server, the target first."""
        parameters = posterior_drift.Parameters(
            n=self.n, total=self.total, m=self.m, gamma=self.gamma, test=0
        )
        rng = np.random.default_rng([20240801, replicate])
        sample = posterior_drift.clients(parameters, 0, rng)
        whose = [sample["group"] == server for server in range(self.m + 1)]
        return [
            (sample["curve"][rows_of], sample["label"][rows_of] - 0.5)
            for rows_of in whose
        ]


@dataclass(frozen=True, eq=False)
class Tuner:
    """One tuned classifier: ``kind`` is a kernel, ``histogram`` or ``jittered``.

    ``printed`` adds the noise of (9), else that of an exact calculation.
    """

    kind: str
    printed: bool = False
    weights: Array = field(default_factory=lambda: WEIGHTS)

    @cached_property
    def _kernel_sums(self) -> list[KernelSum]:
        return [KernelSum(self.kind, width) for width in WIDTHS]

    def noised_sums(self, replicate: int) -> Sequence[NoisedSum]:
        """Return the sum for each bandwidth; jitter is drawn for each replicate."""
        if self.kind == "histogram":
            return [HistogramSum(Histogram(2, 1, 2, h, 1 << 30, 0)) for h in WIDTHS]
        if self.kind == "jittered":
            return [HistogramSum(Grids(2, 1, 2, h, 1 << 30, replicate)) for h in WIDTHS]
        return self._kernel_sums

    def noise(self, n: int, epsilon: float) -> GaussianNoise:
        """Return the noise of a server with ``n`` records; delta is n^-2."""
        if self.printed:
            return PrintedNoise(UNIT_STEPS, epsilon, n**-2.0, UNIT_STEPS)
        return GaussianNoise(UNIT_STEPS, epsilon, n**-2.0)

    def best_accuracies(
        self, drift: Drift, levels: Sequence[float], replicates: int
    ) -> dict[float, tuple[float, float]]:
        """Return the best mean accuracy at each epsilon, in %, and its error."""
        accuracies = np.stack(
            [self._replicate_accuracies(drift, levels, r) for r in range(replicates)]
        )
        return {level: _best_mean(accuracies[:, at]) for at, level in enumerate(levels)}

    def _replicate_accuracies(
        self, drift: Drift, levels: Sequence[float], replicate: int
    ) -> Array:
        """Return the accuracy of each level, bandwidth and weight."""
        tables, at = drift.tables(replicate), self.noised_sums(replicate)
        sums = [
            [noised_sum.coordinates(*table) for table in tables] for noised_sum in at
        ]
        sizes = [len(signed) for _, signed in tables]
        entropy = SeededEntropy(replicate)
        accuracies = np.empty((len(levels), len(sums), len(self.weights)))
        for row, level in zip(accuracies, levels, strict=True):
            noises = [self.noise(n, level) for n in sizes]
            for place, (noised_sum, server_sums) in enumerate(
                zip(at, sums, strict=True)
            ):
                noised = [
                    noise.add(np.rint(part * UNIT_STEPS).astype(np.int64), entropy) / n
                    for noise, part, n in zip(noises, server_sums, sizes, strict=True)
                ]
                values = [noised_sum.at_points(part) for part in noised]
                row[place] = self._accuracy(values[0], np.mean(values[1:], axis=0))
        return accuracies

    def _accuracy(self, target: Array, sources: Array) -> Array:
        w = self.weights[:, np.newaxis]
        ill = w * target + (1 - w) * sources > 0
        return np.asarray(np.where(ill, ETA, 1 - ETA).mean(axis=1))


def _best_mean(accuracy: Array) -> tuple[float, float]:
    """Return the largest mean of (replicates, |H|, |W|) and its standard error."""
    flat = 100 * accuracy.reshape(len(accuracy), -1)
    at = flat.mean(axis=0).argmax()
    spread = flat[:, at].std(ddof=1) if len(flat) > 1 else 0.0
    return float(flat[:, at].mean()), float(spread / np.sqrt(len(flat)))


TUNED: Final = "tuned"
PRINTED: Final = "printed"

# How each classifier is drawn: what is private as it says in full lines.
LOOKS: Final = {
    "auto": Look("#d55e00", "o", width=2.4, size=6, above=6),
    "AdaptDTK triangular": Look("#0072b2", "s", above=5),
    "AdaptDTK gaussian": Look("#009e73", "^", above=5),
    "AdaptDTK triangular printed": Look("#0072b2", "s", ":", above=4),
    "AdaptDTK gaussian printed": Look("#009e73", "^", ":", above=4),
    "DTK triangular": Look("#0072b2", "", "--", above=3),
    "DTK gaussian": Look("#009e73", "", "--", above=3),
    "DTK triangular printed": Look("#0072b2", "", "-.", width=1.0, above=2),
    "DTK gaussian printed": Look("#009e73", "", "-.", width=1.0, above=2),
    "DT-HIST": Look("#6a717b", "", "--", above=2),
    "DT-HIST jittered": Look("#cc79a7", "", "--", above=2),
    "AdaptDTK triangular alone": Look("#0072b2", "x", ":", above=4),
    "AdaptDTK gaussian alone": Look("#009e73", "x", ":", above=4),
    "targetDTK triangular": Look("#0072b2", "", ":", above=3),
    "targetDTK gaussian": Look("#009e73", "", ":", above=3),
}
TUNERS: Final = {
    "DTK triangular": Tuner("triangular"),
    "DTK gaussian": Tuner("gaussian"),
    "DTK triangular printed": Tuner("triangular", printed=True),
    "DTK gaussian printed": Tuner("gaussian", printed=True),
    "DT-HIST": Tuner("histogram"),
    "DT-HIST jittered": Tuner("jittered"),
}


def adaptive_rows(evidence: Evidence) -> Iterator[Row]:
    """Yield the accuracies of the runs, with names as in `LOOKS`."""
    for summary in evidence.summaries:
        axes = {k: v for k, v in summary["setting"].items() if k != "protocol"}
        label = summary["protocol"]
        name = label if label == "auto" else f"AdaptDTK {label}"
        yield score_row(summary | {"setting": axes}, "accuracy") | {"protocol": name}


def tuned_rows(
    evidence: Evidence, tuners: Mapping[str, Tuner], drifts: Mapping[str, Drift]
) -> Iterator[Row]:
    """Yield the accuracies of the tuned classifiers in each setting."""
    config: Mapping[str, Any] = evidence.configs[0]
    for setting, drift in drifts.items():
        for name, tuner in tuners.items():
            best = tuner.best_accuracies(drift, config["epsilon"], config["replicates"])
            for epsilon, (value, error) in best.items():
                yield {
                    "setting": setting,
                    "protocol": name,
                    "epsilon": epsilon,
                    "method": TUNED,
                    "quantity": "accuracy",
                    "curvote": value,
                    "se": error,
                }


def accuracy_figure(rows: Sequence[Row]) -> Figure:
    """Draw a panel a setting: accuracy against epsilon, a line a classifier."""
    names = [name for name in LOOKS if select(rows, protocol=name)]
    figure = line_panels(
        {
            setting: [
                PlotLine(
                    name, LOOKS[name], select(rows, setting=setting, protocol=name)
                )
                for name in names
            ]
            for setting in distinct_values(rows, "setting")
        }
    )
    label_y_axes(figure.axes, "accuracy (%)")
    return figure


def mean_accuracy(rows: Iterable[Row], name: str) -> Mapping[float, float]:
    """Return the mean accuracy of a classifier over its settings, by epsilon."""
    selected = sorted(
        (row["epsilon"], row["curvote"]) for row in rows if row["protocol"] == name
    )
    together = {
        level: [value for _, value in part]
        for level, part in groupby(selected, key=lambda pair: pair[0])
    }
    return {level: sum(part) / len(part) for level, part in together.items()}


def private_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose privacy is as claimed."""
    return [row for row in rows if not str(row["protocol"]).endswith(PRINTED)]


def compare(
    project: Project, name: str, records: Iterable[RunRecord]
) -> tuple[list[Row], list[Path]]:
    """Return the rows of `reproduce NAME` from completed runs, and the files written.

    They stand in the folder ``reproduce`` of the reports of the pipeline ``name``.
    """
    gathered = collect_evidence(project, records)
    module = _entry_module(name)
    rows: list[Row] = module.rows(gathered)
    figure_files = draw_files(
        name, module.__name__, rows, "svg", "png", evidence=gathered
    )
    return rows, reproduction.write_files(
        reproduction.output_folder(project, name), name, rows, figure_files
    )


def laid_out(name: str, rows: Sequence[Row]) -> words.Lines:
    """Return a comparison as lines of text, and the shown columns."""
    return words.laid_out(_entry_module(name).terminal_rows(rows))


def agreement(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the conclusions: the paper's statements and whether they hold."""
    yield ""
    yield from _entry_module(name).conclusions(rows)


def _entry_module(name: str) -> ModuleType:
    return import_module(f"{__package__}.{REPRODUCTIONS[name].module}")
