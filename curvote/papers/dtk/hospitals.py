"""Hospitals of DTK: figures 6, in pairs, and 7, their releases combined for Hungary."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.data.public import heart
from curvote.papers.figure import Chart, Series, draw_panels, method_label
from curvote.papers.reproduction import Evidence, load_columns
from curvote.papers.rows import (
    Row,
    beside_published,
    column_levels,
    published_rows,
    score_row,
    select,
)
from curvote.report.data import series_look
from curvote.systems.transfer.method.features import kernel_matrix

SPLITS = 200
TRAINED = 100
SPAN = 0.5  # section 6.2.1: features are scaled to [0, 1/2]; the bandwidth is 1


class Hospital(NamedTuple):
    """A hospital's features in [0, 1]^7, and its labels."""

    cube: FloatArray
    ill: NDArray[np.bool_]


def pair_rows(evidence: Evidence) -> Iterator[Row]:
    """Yield a row for each pair of hospitals: trained at, tested at."""
    parameters = heart.Parameters(duplicates="keep")
    columns = load_columns(evidence.project, heart.TABLE, parameters)
    bounds = [(it.lower, it.upper) for it in heart.TABLE.schema.features]
    low, high = np.array(bounds, dtype=np.float64).T
    cube = (np.clip(columns["curve"], low, high) - low) / (high - low)
    hospitals = {}
    for code, hospital in enumerate(heart.servers(parameters)):
        members = columns["group"] == code
        hospitals[hospital] = Hospital(cube[members], columns["label"][members] == 1)
    yield from pair_accuracies(hospitals)


def pair_accuracies(hospitals: Mapping[str, Hospital]) -> Iterator[Row]:
    """Yield the mean accuracy of each pair in `SPLITS` random choices."""
    for name, records in hospitals.items():
        # Trained by `TRAINED` patients of one hospital, tested everywhere.
        accuracies = np.empty((SPLITS, len(hospitals)))
        for seed in range(SPLITS):
            order = np.random.default_rng(seed).permutation(len(records.ill))
            trained, rest = order[:TRAINED], order[TRAINED:]
            signed = records.ill[trained] - records.ill[trained].mean()
            unseen = {name: Hospital(records.cube[rest], records.ill[rest])}
            for place, (cube, ill) in enumerate({**hospitals, **unseen}.values()):
                pairs = cube, records.cube[trained]
                kernel = kernel_matrix("triangular", *pairs, 1 / SPAN)
                accuracies[seed, place] = ((kernel @ signed > 0) == ill).mean()
        for other, accuracy in zip(hospitals, 100 * accuracies.T, strict=True):
            yield {
                "setting": f"{name} -> {other}",
                "protocol": "clean",
                "method": "kernel",
                "group": f"{len(records.ill)} records",
                "quantity": "accuracy",
                "curvote": float(accuracy.mean()),
                "se": float(accuracy.std(ddof=1) / np.sqrt(SPLITS)),
            }


def pair_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw the pairs as a table, lighter where accuracy is higher."""
    names = list(dict.fromkeys(row["setting"].split(" -> ")[0] for row in rows))
    values = np.reshape([row["curvote"] for row in rows], (len(names), len(names)))

    def draw(ax: Axes, _: str) -> None:
        ax.imshow(values, cmap="cividis", vmin=30, vmax=100)
        for (i, j), value in np.ndenumerate(values):
            ink = "black" if value > 70 else "white"
            ax.text(j, i, f"{value:.1f}", ha="center", va="center", color=ink)
        ax.set_xticks(range(len(names)), names)
        ax.set_yticks(range(len(names)), names)
        ax.set_xlabel("tested at")

    return draw_panels(["accuracy (%)"], draw, 4.0, y="100 records of")


def pair_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield three statements of the text beside the results."""
    accuracies: dict[str, dict[str, float]] = {}
    for row in rows:
        trained, tested = row["setting"].split(" -> ")
        accuracies.setdefault(trained, {})[tested] = row["curvote"]
    for name, statement in (
        ("cleveland", "trained at Cleveland, Hungary is where the model is best"),
        (
            "switzerland",
            "trained in Switzerland, markedly lower everywhere, there as well",
        ),
        ("va", "trained at Long Beach (va), the same everywhere"),
    ):
        yield f"the paper: {statement}"
        yield "  " + ", ".join(f"{at} {x:.1f}" for at, x in accuracies[name].items())
    yield "widest range over the hospitals where a model is tested:"
    ends = {name: sorted(accuracies[name].values()) for name in heart.HOSPITALS}
    yield "  " + ", ".join(f"{name} {x[-1] - x[0]:.1f}" for name, x in ends.items())


METHODS: Final = ("adapt_samp", "adapt_all", "adapt_homog", "adapt_tar")
_LOOKS: Final = {name: series_look(name) for name in METHODS}


def combination_rows(evidence: Evidence) -> Iterator[Row]:
    """Yield accuracy and F1 of the paper's methods and of `auto`.

    ``protocol`` is ``kernel``, ``printed`` (releases as published) or ``auto``. What
    the paper says stands at its best method, at the largest epsilon.
    """
    last = max(summary["epsilon"] for summary in evidence.summaries)
    printed = published_rows("dtk", "dtk_text.csv", figure="7")
    beside = [line | {"epsilon": last} for line in printed]
    for quantity in ("accuracy", "f1"):
        rows = (
            score_row(summary, quantity) | {"setting": None}
            for summary in evidence.summaries
            if summary["protocol"] == "auto" or summary["method"] in METHODS
        )
        yield from beside_published(rows, beside)


# Accuracy and F1; the published form in dots.
combination_figure = Chart(
    panels=["quantity"],
    title=lambda quantity: "F1" if quantity == "f1" else str(quantity),
    series=[
        Series(["method"], _LOOKS, where={"protocol": "kernel"}, changes={"line": "-"}),
        Series(
            ["method"],
            _LOOKS,
            lambda name: f"{method_label(name)}, printed",
            where={"protocol": "printed"},
            changes={"line": ":"},
        ),
        Series(["protocol"], {"auto": series_look("aligned")}, str),
    ],
    y="%",
)


def combination_terminal_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose privacy is as claimed."""
    return [row for row in rows if row["protocol"] != "printed"]


def combination_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the statements of the text beside the results."""
    kernel = select(rows, protocol="kernel", quantity="accuracy")
    scores: dict[float | None, dict[str, float]] = {}
    for level in column_levels(kernel):
        level_rows = select(kernel, epsilon=level)
        scores[level] = {row["method"]: row["curvote"] for row in level_rows}
    yield "the paper: AdaptTar is poorest, AdaptSamp clearly best"
    for level, of in scores.items():
        texts = ", ".join(f"{method_label(name)} {of[name]:.1f}" for name in METHODS)
        yield f"  epsilon {level:g}: {texts}"
    yield "the paper: AdaptHomog is strictly worse than AdaptAll"
    for other in METHODS[:2]:
        gaps = (f"{of['adapt_homog'] - of[other]:+.1f}" for of in scores.values())
        yield f"  AdaptHomog less {method_label(other)}, by epsilon: {', '.join(gaps)}"
