"""Hospitals of DTK: figures 6, in pairs, and 7, their releases combined for Hungary."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.data.public import heart
from curvote.papers.drawing import PlotLine, line_panels, panels
from curvote.papers.reproduction import Evidence, evidence_project, load_columns
from curvote.papers.rows import Row, column_levels, completed, score_row, select
from curvote.report.data import find_method, series_look
from curvote.systems.transfer.method.exact import kernel_matrix

SPLITS = 200
TRAINED = 100
SPAN = 0.5  # section 6.2.1: features are scaled to [0, 1/2]; the bandwidth is 1


class Hospital(NamedTuple):
    """A hospital's features in [0, 1]^7, and its labels."""

    cube: FloatArray
    ill: NDArray[np.bool_]


@completed
def pair_rows(name: str, evidence: Evidence) -> Iterator[Row]:
    """Yield a row for each pair of hospitals: trained at, tested at."""
    parameters = heart.Parameters(duplicates="keep")
    columns = load_columns(evidence_project(name, evidence), heart.TABLE, parameters)
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
        accuracies = np.array(
            [_split_accuracies(name, hospitals, seed) for seed in range(SPLITS)]
        )
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


def _split_accuracies(
    name: str, hospitals: Mapping[str, Hospital], seed: int
) -> list[float]:
    """Return the accuracy everywhere of `TRAINED` patients of one hospital."""
    records = hospitals[name]
    order = np.random.default_rng(seed).permutation(len(records.ill))
    trained, rest = order[:TRAINED], order[TRAINED:]
    signed = records.ill[trained] - records.ill[trained].mean()
    tested = {other: it for other, it in hospitals.items() if other != name}
    tested[name] = Hospital(records.cube[rest], records.ill[rest])
    accuracies = []
    for cube, ill in map(tested.__getitem__, hospitals):
        kernel = kernel_matrix("triangular", cube, records.cube[trained], 1 / SPAN)
        accuracies.append(float(((kernel @ signed > 0) == ill).mean()))
    return accuracies


def pair_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the pairs as a table, lighter where accuracy is higher."""
    names = list(dict.fromkeys(row["setting"].split(" -> ")[0] for row in results))
    values = np.reshape([row["curvote"] for row in results], (len(names), len(names)))
    fig, (ax,) = panels(1, 4.0)
    ax.imshow(values, cmap="cividis", vmin=30, vmax=100)
    for (i, j), value in np.ndenumerate(values):
        ink = "black" if value > 70 else "white"
        ax.text(j, i, f"{value:.1f}", ha="center", va="center", color=ink)
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("tested at")
    ax.set_ylabel("100 records of")
    ax.set_title("accuracy (%)")
    return fig


def pair_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield three statements of the text beside the results."""
    yield "the paper: trained at Cleveland, Hungary is where the model is best"
    yield f"  {_tested_texts(results, 'cleveland')}"
    yield "the paper: trained in Switzerland, markedly lower everywhere, there as well"
    yield f"  {_tested_texts(results, 'switzerland')}"
    yield "the paper: trained at Long Beach (va), the same everywhere"
    yield f"  {_tested_texts(results, 'va')}"
    yield "widest range over the hospitals where a model is tested:"
    spans = []
    for name in heart.HOSPITALS:
        values = _tested_accuracies(results, name).values()
        spans.append(f"{name} {max(values) - min(values):.1f}")
    yield "  " + ", ".join(spans)


def _tested_accuracies(results: Sequence[Row], name: str) -> dict[str, float]:
    """Return the accuracy at each hospital of what one of them trained."""
    pairs = ((row["setting"].split(" -> "), row["curvote"]) for row in results)
    return {tested: value for (trained, tested), value in pairs if trained == name}


def _tested_texts(results: Sequence[Row], name: str) -> str:
    accuracies = _tested_accuracies(results, name).items()
    return ", ".join(f"{other} {value:.1f}" for other, value in accuracies)


METHODS: Final = ("adapt_samp", "adapt_all", "adapt_homog", "adapt_tar")
AUTO: Final = "auto"
FORMS: Final = (("kernel", "", "-"), ("printed", ", printed", ":"))
# The only numbers in the text, of its best method; it names no epsilon.
PUBLISHED: Final = {"accuracy": 81.0, "f1": 73.0}
BEST: Final = "adapt_samp"


@completed
def combination_rows(_: str, evidence: Evidence) -> Iterator[Row]:
    """Yield accuracy and F1 of the paper's methods and of `auto`.

    ``protocol`` is ``kernel``, ``printed`` (releases as published) or ``auto``. What
    the paper says stands at its best method, at the largest epsilon.
    """
    last = max(summary["epsilon"] for summary in evidence.summaries)
    for quantity, printed in PUBLISHED.items():
        for summary in evidence.summaries:
            if summary["protocol"] == AUTO or summary["method"] in METHODS:
                is_best = summary["method"] == BEST and summary["epsilon"] == last
                row = score_row(summary, quantity) | {"setting": None}
                yield row | {"published": printed if is_best else None}


def combination_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw accuracy and F1, the published form in dots."""
    panels = {"accuracy": "accuracy", "F1": "f1"}
    charts = {
        title: _chart_lines(select(results, quantity=quantity))
        for title, quantity in panels.items()
    }
    return line_panels(charts, y="%")


def _chart_lines(results: Sequence[Row]) -> list[PlotLine]:
    lines = []
    for (protocol, suffix, dash), method in product(FORMS, METHODS):
        if selected := select(results, protocol=protocol, method=method):
            look = replace(series_look(method), line=dash)
            label = f"{find_method(method).label}{suffix}"
            lines.append(PlotLine(label, look, selected))
    auto_rows = select(results, protocol=AUTO)
    auto_line = PlotLine(AUTO, series_look("aligned"), auto_rows)
    return [*lines, auto_line] if auto_rows else lines


def combination_terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows whose privacy is as claimed."""
    return [row for row in results if row["protocol"] != "printed"]


def combination_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the statements of the text beside the results."""
    kernel = select(results, protocol="kernel", quantity="accuracy")
    yield "the paper: AdaptTar is poorest, AdaptSamp clearly best"
    for level in column_levels(kernel):
        selected = select(kernel, epsilon=level)
        scores = {row["method"]: row["curvote"] for row in selected}
        texts = ", ".join(
            f"{find_method(name).label} {scores[name]:.1f}" for name in METHODS
        )
        yield f"  epsilon {level:g}: {texts}"
    yield "the paper: AdaptHomog is strictly worse than AdaptAll"
    for label, other in (("AdaptSamp", "adapt_samp"), ("AdaptAll", "adapt_all")):
        gaps = []
        for level in column_levels(kernel):
            first = select(kernel, epsilon=level, method="adapt_homog")[0]["curvote"]
            second = select(kernel, epsilon=level, method=other)[0]["curvote"]
            gaps.append(f"{first - second:+.1f}")
        yield f"  AdaptHomog less {label}, by epsilon: {', '.join(gaps)}"
