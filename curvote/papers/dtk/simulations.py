"""Simulations of DTK, figures 3 to 5: tuned classifiers beside adaptive ones.

Section 6.1: h in 2^-1..2^-7, the target's weight w in 0, .01, .., 1, sources alike.
What is tested is even on [0, 1]^2 and has the true law of the labels, so that accuracy
is known without drawing any. A pair (h, w) has the mean accuracy of all replicates, and
the best mean counts: nobody could choose it in practice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np

from curvote.base.entropy import SeededEntropy
from curvote.base.validate import FloatArray
from curvote.chain.axis import Axis
from curvote.data.simulation import records as simulation
from curvote.data.simulation.records import PosteriorDriftParameters
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.papers.figure import ACCURACY, Chart, Series, looks
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, column_levels, distinct_values, score_row, select
from curvote.systems.transfer.method.features import Grids, Histogram, QueryBatch
from curvote.systems.transfer.method.forms.kernel import PrintedNoise

WIDTHS = tuple(2.0**-i for i in range(1, 8))
WEIGHTS = np.linspace(0, 1, 101)
UNIT_STEPS = 1 << 20  # steps to what a record moves a sum by
_SIDE = (np.arange(20) + 0.5) / 20
POINTS = np.stack(np.meshgrid(_SIDE, _SIDE, indexing="ij"), axis=-1).reshape(-1, 2)
ETA = simulation.regression(POINTS, 1.0)

Table = tuple[FloatArray, FloatArray]  # records (n, 2), and Y - 1/2
# A server's sum in the coordinates that are noised, (k,), where one record moves it by
# 1; and the values of such coordinates at the points, (q,).
NoisedSum = tuple[
    Callable[[FloatArray, FloatArray], FloatArray], Callable[[FloatArray], FloatArray]
]


def drift(
    gamma: float, m: int = 1, n: int | None = None, total: int | None = None
) -> PosteriorDriftParameters:
    """Return the servers of section 6.1: ``n`` records each, or ``total`` of all."""
    return PosteriorDriftParameters(gamma=gamma, m=m, n=n, total=total, test=0)


def server_tables(law: PosteriorDriftParameters, replicate: int) -> list[Table]:
    """Return the records of each server, the target first."""
    rng = np.random.default_rng([20240801, replicate])
    sample = simulation.POSTERIOR_DRIFT.clients(law, 0, rng)
    whose = [sample["group"] == server for server in range(law.m + 1)]
    return [(sample["curve"][its], sample["label"][its] - 0.5) for its in whose]


@cache
def _kernel_sums(kernel: str) -> list[NoisedSum]:
    """Return the kernel sum of each bandwidth, by its exact process."""
    batches = [QueryBatch(kernel, POINTS, width) for width in WIDTHS]
    return [(batch.coordinates, batch.basis.__matmul__) for batch in batches]


def _histogram_sum(grid: Grids) -> NoisedSum:
    """Return the sum in each cell of a grid, and the cell of each point."""
    places = grid.places(POINTS)[:, 0]

    def coordinates(cube: FloatArray, signed: FloatArray) -> FloatArray:
        ill, well = (grid.counts(cube[side]) for side in (signed > 0, signed < 0))
        return np.asarray((ill - well) / 2)

    return coordinates, lambda noised: noised[places]


@dataclass(frozen=True, eq=False)
class Tuner:
    """One tuned classifier: ``kind`` is a kernel, ``histogram`` or ``jittered``.

    ``printed`` adds the noise of (9), else that of an exact calculation.
    """

    kind: str
    printed: bool = False
    weights: FloatArray = field(default_factory=lambda: WEIGHTS)

    def noised_sums(self, replicate: int) -> list[NoisedSum]:
        """Return the sum for each bandwidth; jitter is drawn for each replicate."""
        grids: list[Grids]
        if self.kind == "histogram":
            grids = [Histogram(2, 1, 2, h, 1 << 30, 0) for h in WIDTHS]
        elif self.kind == "jittered":
            grids = [Grids(2, 1, 2, h, 1 << 30, replicate) for h in WIDTHS]
        else:
            return _kernel_sums(self.kind)
        return list(map(_histogram_sum, grids))

    def noise(self, n: int, epsilon: float) -> GaussianNoise:
        """Return the noise of a server with ``n`` records; delta is n^-2."""
        if self.printed:
            return PrintedNoise(UNIT_STEPS, epsilon, n**-2.0, UNIT_STEPS)
        return GaussianNoise(UNIT_STEPS, epsilon, n**-2.0)

    def best_accuracies(
        self, law: PosteriorDriftParameters, levels: Sequence[float], replicates: int
    ) -> dict[float, tuple[float, float]]:
        """Return the best mean accuracy at each epsilon, in %, and its error."""
        accuracies = np.stack(
            [self._replicate_accuracies(law, levels, r) for r in range(replicates)]
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
        self, law: PosteriorDriftParameters, levels: Sequence[float], replicate: int
    ) -> FloatArray:
        """Return the accuracy of each level, bandwidth and weight."""
        tables, noised_sums = server_tables(law, replicate), self.noised_sums(replicate)
        sums = [[coordinates(*it) for it in tables] for coordinates, _ in noised_sums]
        sizes = [len(signed) for _, signed in tables]
        entropy, w = SeededEntropy(replicate), self.weights[:, np.newaxis]
        accuracies = np.empty((len(levels), len(sums), len(self.weights)))
        for row, level in zip(accuracies, levels, strict=True):
            noises = [self.noise(n, level) for n in sizes]
            for place, (_, at_points) in enumerate(noised_sums):
                noised = [
                    noise.add(np.rint(part * UNIT_STEPS).astype(np.int64), entropy) / n
                    for noise, part, n in zip(noises, sums[place], sizes, strict=True)
                ]
                target, *sources = map(at_points, noised)
                ill = w * target + (1 - w) * np.mean(sources, axis=0) > 0
                row[place] = np.where(ill, ETA, 1 - ETA).mean(axis=1)
        return accuracies


LOOKS: Final = looks("dtk")
KERNELS = ("triangular", "gaussian")
TUNERS: Final = {
    "DTK triangular": Tuner("triangular"),
    "DTK gaussian": Tuner("gaussian"),
    "DTK triangular printed": Tuner("triangular", printed=True),
    "DTK gaussian printed": Tuner("gaussian", printed=True),
    "DT-HIST": Tuner("histogram"),
    "DT-HIST jittered": Tuner("jittered"),
}
# DTK weighs both servers as is best, targetDTK the target by 1.
_WITH_SOURCE: Final = {
    f"DTK {kernel}": TUNERS[f"DTK {kernel}"] for kernel in KERNELS
} | {f"targetDTK {kernel}": Tuner(kernel, weights=np.ones(1)) for kernel in KERNELS}
GAMMAS = (0.5, 1.0, 1.5)


def accuracy_rows(
    evidence: Evidence,
    tuners: Mapping[str, Tuner],
    drifts: Mapping[str, PosteriorDriftParameters],
) -> Iterator[Row]:
    """Yield tuned accuracies in each setting, then those of the runs."""
    config = evidence.configs[0]
    for setting, law in drifts.items():
        for name, tuner in tuners.items():
            best = tuner.best_accuracies(law, config["epsilon"], config["replicates"])
            for epsilon, (value, error) in best.items():
                yield {
                    "setting": setting,
                    "protocol": name,
                    "epsilon": epsilon,
                    "method": "tuned",
                    "quantity": "accuracy",
                    "curvote": value,
                    "se": error,
                }
    for summary in evidence.summaries:
        axes = {k: v for k, v in summary["setting"].items() if k != "protocol"}
        label = summary["protocol"]
        name = label if label == "auto" else f"AdaptDTK {label}"
        yield score_row(summary | {"setting": axes}, "accuracy") | {"protocol": name}


# Figures 3 and 4: a panel a gamma, a line a classifier.
_LINES = [Series(["protocol"], LOOKS, str)]
figure = Chart(["setting"], _LINES, y=ACCURACY)


def terminal_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose privacy is as claimed."""
    return [row for row in rows if not str(row["protocol"]).endswith("printed")]


def source_rows(evidence: Evidence) -> Iterator[Row]:
    """Return tuned accuracies, and those of the adaptive rules with and without it."""
    drifts = {f"gamma={gamma:g}": drift(gamma, n=100) for gamma in GAMMAS}
    return accuracy_rows(evidence, _WITH_SOURCE, drifts)


def source_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the gain by a source."""
    pairs = [(f"DTK {kernel}", f"targetDTK {kernel}") for kernel in KERNELS]
    pairs += [(f"AdaptDTK {kernel}", f"AdaptDTK {kernel} alone") for kernel in KERNELS]
    for pair in pairs:
        for setting in distinct_values(rows, "setting"):
            sides = (select(rows, setting=setting, protocol=name) for name in pair)
            gains = [
                f"{first['curvote'] - other['curvote']:+.1f} at {first['epsilon']:g}"
                for first, other in zip(*sides, strict=True)
            ]
            yield f"  {pair[0]}, {setting}: {', '.join(gains)}"


def budget_rows(evidence: Evidence) -> Iterator[Row]:
    """Return the accuracy of every classifier as published and corrected."""
    drifts = {f"gamma={gamma:g}": drift(gamma, n=500) for gamma in GAMMAS}
    return accuracy_rows(evidence, TUNERS, drifts)


def budget_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield three statements of the text beside means over gamma."""
    # The mean accuracy of each classifier over its settings, by epsilon.
    means: dict[str, dict[float | None, float]] = {}
    for name in distinct_values(rows, "protocol"):
        of = select(rows, protocol=name)
        for level in column_levels(of):
            values = sorted(row["curvote"] for row in select(of, epsilon=level))
            means.setdefault(name, {})[level] = sum(values) / len(values)

    def text(name: str) -> str:
        levels = means.get(name, {}).items()
        return f"{', '.join(f'{value:.1f} at {level:g}' for level, value in levels)}"

    yield "the paper: DTK and AdaptDTK are above DT-HIST, most at small epsilon"
    for name in ("DT-HIST", "DT-HIST jittered", "DTK triangular"):
        yield f"  {name}: {text(name)}"
    yield "  (the printed grid's cells at h = 1/2 are what the Bayes rule decides by)"
    yield "the paper: the cost of adaptation is relatively small"
    for kernel in KERNELS:
        for noise in (" printed", ""):
            best = means[f"DTK {kernel}{noise}"]
            adaptive = means.get(f"AdaptDTK {kernel}{noise}", {})
            cost = ", ".join(f"{best[e] - adaptive[e]:.1f} at {e:g}" for e in adaptive)
            yield f"  {kernel}{noise or ', corrected'}: {cost} points"
    yield f"auto, which nobody tuned: {text('auto')}"


SOURCES = (1, 2, 4, 9, 19)
DRIFTS = {
    f"gamma={gamma:g} m={m}": drift(gamma, m, total=500)
    for gamma in (0.25, 1.0, 4.0)
    for m in SOURCES
}
# A panel for each epsilon and gamma: accuracy against m.
servers_figure = Chart(
    ["epsilon", "gamma"],
    _LINES,
    lambda epsilon, gamma: f"gamma={gamma:g}, epsilon {epsilon:g}",
    Axis("m", lambda _: (), label="sources m"),
    ACCURACY,
    height=3.2,
    logarithmic=True,
)


def servers_rows(evidence: Evidence) -> Iterator[Row]:
    """Return the accuracy of every classifier for each gamma and number of sources."""
    tuners = {name: it for name, it in TUNERS.items() if name != "DTK gaussian printed"}
    return accuracy_rows(evidence, tuners, DRIFTS)


def servers_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield each classifier's loss from 1 source to 19."""
    for name in distinct_values(rows, "protocol"):
        ends = [
            [row for row in select(rows, protocol=name) if row["setting"].endswith(end)]
            for end in (" m=1", " m=19")
        ]
        falls = [x["curvote"] - y["curvote"] for x, y in zip(*ends, strict=True)]
        yield (
            f"  {name}: {min(falls):.1f} to {max(falls):.1f} points less at m = 19"
            " than at 1"
        )
