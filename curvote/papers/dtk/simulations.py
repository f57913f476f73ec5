"""Simulations of DTK, figures 3 to 5: tuned classifiers beside adaptive ones.

Section 6.1: h in 2^-1..2^-7, the target's weight w in 0, .01, .., 1, sources alike.
What is tested is even on [0, 1]^2 and has the true law of the labels, so that accuracy
is known without drawing any. A pair (h, w) has the mean accuracy of all replicates, and
the best mean counts: nobody could choose it in practice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from matplotlib.figure import Figure

from curvote.base.entropy import SeededEntropy
from curvote.base.validate import FloatArray
from curvote.chain.measure import Look
from curvote.data.simulation import records as simulation
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.papers import drawing
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import (
    Row,
    column_levels,
    complete_rows,
    distinct_values,
    score_row,
    select,
)
from curvote.report import style
from curvote.systems.transfer.method.exact import QueryBatch
from curvote.systems.transfer.method.features import Grids, Histogram
from curvote.systems.transfer.method.forms.kernel import PrintedNoise

Table = tuple[FloatArray, FloatArray]  # records (n, 2), and Y - 1/2

WIDTHS = tuple(2.0**-i for i in range(1, 8))
WEIGHTS = np.linspace(0, 1, 101)
UNIT_STEPS = 1 << 20  # steps to what a record moves a sum by
_SIDE = (np.arange(20) + 0.5) / 20
POINTS = np.stack(np.meshgrid(_SIDE, _SIDE, indexing="ij"), axis=-1).reshape(-1, 2)
ETA = simulation.regression(POINTS, 1.0)


class NoisedSum(Protocol):
    """A sum that is noised in coordinates, and its values at `POINTS`."""

    def coordinates(self, cube: FloatArray, signed: FloatArray) -> FloatArray:
        """Return the sum over a server's records, (k,); one moves it by 1."""

    def at_points(self, coordinates: FloatArray) -> FloatArray:
        """Return the values at the points, (q,)."""


class KernelSum:
    """A kernel sum of one bandwidth, by its exact process."""

    def __init__(self, kernel: str, width: float) -> None:
        self._batch = QueryBatch(kernel, POINTS, width)

    def coordinates(self, cube: FloatArray, signed: FloatArray) -> FloatArray:
        """Return the sum in the coordinates of the process."""
        return self._batch.coordinates(cube, signed)

    def at_points(self, coordinates: FloatArray) -> FloatArray:
        """Return the process at the points."""
        return np.asarray(self._batch.basis @ coordinates)


class HistogramSum:
    """A histogram sum with cells of one width."""

    def __init__(self, grid: Grids) -> None:
        self._grid, self._places = grid, grid.places(POINTS)[:, 0]

    def coordinates(self, cube: FloatArray, signed: FloatArray) -> FloatArray:
        """Return the sum in each cell."""
        ill, well = (self._grid.counts(cube[side]) for side in (signed > 0, signed < 0))
        return np.asarray((ill - well) / 2)

    def at_points(self, coordinates: FloatArray) -> FloatArray:
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
        parameters = simulation.PosteriorDriftParameters(
            n=self.n, total=self.total, m=self.m, gamma=self.gamma, test=0
        )
        rng = np.random.default_rng([20240801, replicate])
        sample = simulation.POSTERIOR_DRIFT.clients(parameters, 0, rng)
        whose = [sample["group"] == server for server in range(self.m + 1)]
        return [(sample["curve"][its], sample["label"][its] - 0.5) for its in whose]


@dataclass(frozen=True, eq=False)
class Tuner:
    """One tuned classifier: ``kind`` is a kernel, ``histogram`` or ``jittered``.

    ``printed`` adds the noise of (9), else that of an exact calculation.
    """

    kind: str
    printed: bool = False
    weights: FloatArray = field(default_factory=lambda: WEIGHTS)

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
        best = {}
        for at, level in enumerate(levels):
            flat = 100 * accuracies[:, at].reshape(replicates, -1)
            pair_accuracies = flat[:, flat.mean(axis=0).argmax()]
            spread = pair_accuracies.std(ddof=1) if replicates > 1 else 0.0
            error = float(spread / np.sqrt(replicates))
            best[level] = float(pair_accuracies.mean()), error
        return best

    def _replicate_accuracies(
        self, drift: Drift, levels: Sequence[float], replicate: int
    ) -> FloatArray:
        """Return the accuracy of each level, bandwidth and weight."""
        tables, at = drift.tables(replicate), self.noised_sums(replicate)
        sums = [[part.coordinates(*table) for table in tables] for part in at]
        sizes = [len(signed) for _, signed in tables]
        entropy = SeededEntropy(replicate)
        accuracies = np.empty((len(levels), len(sums), len(self.weights)))
        for row, level in zip(accuracies, levels, strict=True):
            noises = [self.noise(n, level) for n in sizes]
            pairs = zip(at, sums, strict=True)
            for place, (noised_sum, server_sums) in enumerate(pairs):
                noised = [
                    noise.add(np.rint(part * UNIT_STEPS).astype(np.int64), entropy) / n
                    for noise, part, n in zip(noises, server_sums, sizes, strict=True)
                ]
                values = [noised_sum.at_points(part) for part in noised]
                row[place] = self._accuracy(values[0], np.mean(values[1:], axis=0))
        return accuracies

    def _accuracy(self, target: FloatArray, sources: FloatArray) -> FloatArray:
        w = self.weights[:, np.newaxis]
        ill = w * target + (1 - w) * sources > 0
        return np.asarray(np.where(ill, ETA, 1 - ETA).mean(axis=1))


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


def accuracy_rows(
    evidence: Evidence, tuners: Mapping[str, Tuner], drifts: Mapping[str, Drift]
) -> list[Row]:
    """Return the rows of a figure: tuned accuracies, then those of the runs."""
    tuned = tuned_rows(evidence, tuners, drifts)
    return complete_rows([*tuned, *adaptive_rows(evidence)])


def accuracy_figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a setting: accuracy against epsilon, a line a classifier."""
    charts = {
        setting: drawing.protocol_lines(select(rows, setting=setting), LOOKS)
        for setting in distinct_values(rows, "setting")
    }
    return drawing.line_panels(charts, y=drawing.ACCURACY)


def mean_accuracy(rows: Iterable[Row], name: str) -> Mapping[float, float]:
    """Return the mean accuracy of a classifier over its settings, by epsilon."""
    accuracies: dict[float, list[float]] = {}
    for row in select(rows, protocol=name):
        accuracies.setdefault(row["epsilon"], []).append(row["curvote"])
    return {
        level: sum(sorted(values)) / len(values)
        for level, values in sorted(accuracies.items())
    }


def private_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose privacy is as claimed."""
    return [row for row in rows if not str(row["protocol"]).endswith(PRINTED)]


GAMMAS = (0.5, 1.0, 1.5)
KERNELS = ("triangular", "gaussian")
# DTK weighs both servers as is best, targetDTK the target by 1.
_OF = {f"DTK {kernel}": TUNERS[f"DTK {kernel}"] for kernel in KERNELS} | {
    f"targetDTK {kernel}": Tuner(kernel, weights=np.ones(1)) for kernel in KERNELS
}


def _equal_drifts(n: int) -> dict[str, Drift]:
    """Return the settings of figures 3 and 4: one source, ``n`` records each."""
    return {f"gamma={gamma:g}": Drift(gamma, n=n) for gamma in GAMMAS}


# A panel a gamma, a line a classifier.
source_figure = accuracy_figure


def source_rows(_: str, evidence: Evidence) -> list[Row]:
    """Return tuned accuracies, and those of the adaptive rules with and without it."""
    return accuracy_rows(evidence, _OF, _equal_drifts(100))


def source_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the gain by a source, beside the paper's statement."""
    yield "the paper: transfer does better everywhere, by less as gamma grows"
    pairs = [(f"DTK {kernel}", f"targetDTK {kernel}") for kernel in KERNELS]
    pairs += [(f"AdaptDTK {kernel}", f"AdaptDTK {kernel} alone") for kernel in KERNELS]
    for with_source, alone in pairs:
        for setting in distinct_values(results, "setting"):
            setting_rows = select(results, setting=setting)
            sides = (
                select(setting_rows, protocol=name) for name in (with_source, alone)
            )
            gains = [
                f"{first['curvote'] - other['curvote']:+.1f} at {first['epsilon']:g}"
                for first, other in zip(*sides, strict=True)
            ]
            yield f"  {with_source}, {setting}: {', '.join(gains)}"


# A panel a gamma, a line a classifier; in the terminal what is as private as claimed.
budget_figure, budget_terminal_rows = accuracy_figure, private_rows


def budget_rows(_: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy of every classifier as published and corrected."""
    return accuracy_rows(evidence, TUNERS, _equal_drifts(500))


def budget_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield three statements of the text beside means over gamma."""
    yield "the paper: DTK and AdaptDTK are above DT-HIST, most at small epsilon"
    for name in ("DT-HIST", "DT-HIST jittered", "DTK triangular"):
        yield f"  {name}: {_mean_text(results, name)}"
    yield "  (the printed grid's cells at h = 1/2 are what the Bayes rule decides by)"
    yield "the paper: the cost of adaptation is relatively small"
    for kernel in KERNELS:
        for noise in (" printed", ""):
            best = mean_accuracy(results, f"DTK {kernel}{noise}")
            adaptive = mean_accuracy(results, f"AdaptDTK {kernel}{noise}")
            cost = ", ".join(f"{best[e] - adaptive[e]:.1f} at {e:g}" for e in adaptive)
            yield f"  {kernel}{noise or ', corrected'}: {cost} points"
    yield f"auto, which nobody tuned: {_mean_text(results, 'auto')}"


def _mean_text(results: Sequence[Row], name: str) -> str:
    means = mean_accuracy(results, name)
    return ", ".join(f"{value:.1f} at {level:g}" for level, value in means.items())


SPREAD_GAMMAS = (0.25, 1.0, 4.0)
SOURCES = (1, 2, 4, 9, 19)
DRIFTS = {
    f"gamma={gamma:g} m={m}": Drift(gamma, m, total=500)
    for gamma in SPREAD_GAMMAS
    for m in SOURCES
}


servers_terminal_rows = private_rows  # whose privacy is as claimed


def servers_rows(_: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy of every classifier for each gamma and number of sources."""
    tuners = {name: it for name, it in TUNERS.items() if name != "DTK gaussian printed"}
    return accuracy_rows(evidence, tuners, DRIFTS)


def servers_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel for each gamma and epsilon: accuracy against m."""
    names = [name for name in LOOKS if select(results, protocol=name)]
    charts = [
        (gamma, level) for level in column_levels(results) for gamma in SPREAD_GAMMAS
    ]
    fig, axes = drawing.panels(len(charts), 3.2)
    for ax, (gamma, level) in zip(axes, charts, strict=True):
        level_rows = select(results, epsilon=level)
        for name in names:
            line_rows = _rows_by_sources(level_rows, name, gamma)
            ink = style.line_style(LOOKS[name])
            drawing.draw_points(ax, SOURCES, line_rows, zorder=LOOKS[name].above, **ink)
            ax.set_xscale("log")
            ax.set_xticks(SOURCES, [str(m) for m in SOURCES])
            ax.minorticks_off()
            ax.set_xlabel("sources m")
        drawing.error_axis(ax, results)
        drawing.panel_title(ax, f"gamma={gamma:g}, epsilon {level:g}")
    drawing.label_y_axes(axes, drawing.ACCURACY)
    drawing.fitting_legend(
        fig, [drawing.PlotLine(name, LOOKS[name], ()).handle() for name in names]
    )
    return fig


def _rows_by_sources(results: Sequence[Row], name: str, gamma: float) -> list[Row]:
    """Return the rows of one classifier by the number of sources."""
    settings = [f"gamma={gamma:g} m={m}" for m in SOURCES]
    return [select(results, protocol=name, setting=at)[0] for at in settings]


def servers_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield each classifier's loss from 1 source to 19."""
    yield "the paper: accuracy declines as the records are spread, for all methods"
    for name in distinct_values(results, "protocol"):
        falls = []
        for level in column_levels(results):
            for gamma in SPREAD_GAMMAS:
                ends = _rows_by_sources(select(results, epsilon=level), name, gamma)
                falls.append(ends[0]["curvote"] - ends[-1]["curvote"])
        yield (
            f"  {name}: {min(falls):.1f} to {max(falls):.1f} points less at m = 19"
            " than at 1"
        )
