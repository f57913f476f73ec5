"""Figure 7: hospitals' releases combined for Hungary: accuracy and F1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from matplotlib.figure import Figure

from curvote.papers.drawing import PlotLine, label_y_axes, line_panels
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, column_levels, complete_rows, score_row, select
from curvote.report.data import find_method, series_look

METHODS: Final = ("adapt_samp", "adapt_all", "adapt_homog", "adapt_tar")
AUTO: Final = "auto"
FORMS: Final = (("kernel", "", "-"), ("printed", ", printed", ":"))
# The only numbers in the text, of its best method; it names no epsilon.
PUBLISHED: Final = {"accuracy": 81.0, "f1": 73.0}
BEST: Final = "adapt_samp"


def rows(evidence: Evidence) -> list[Row]:
    """Return accuracy and F1 of the paper's methods and of `auto`.

    ``protocol`` is ``kernel``, ``printed`` (releases as published) or ``auto``. What
    the paper says stands at its best method, at the largest epsilon.
    """
    last = max(summary["epsilon"] for summary in evidence.summaries)
    score_rows = []
    for quantity, printed in PUBLISHED.items():
        for summary in evidence.summaries:
            if summary["protocol"] == AUTO or summary["method"] in METHODS:
                is_private = summary["method"] == BEST and summary["epsilon"] == last
                row = score_row(summary, quantity) | {"setting": None}
                score_rows.append(row | {"published": printed if is_private else None})
    return complete_rows(score_rows)


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw accuracy and F1, the published form in dots."""
    fig = line_panels(
        {
            "accuracy": _chart_lines(select(results, quantity="accuracy")),
            "F1": _chart_lines(select(results, quantity="f1")),
        }
    )
    label_y_axes(fig.axes, "%")
    return fig


def _chart_lines(results: Sequence[Row]) -> list[PlotLine]:
    lines = [
        PlotLine(
            f"{find_method(method).label}{suffix}",
            replace(series_look(method), line=dash),
            it,
        )
        for protocol, suffix, dash in (
            ("kernel", "", "-"),
            ("printed", ", printed", ":"),
        )
        for method in METHODS
        if (it := select(results, protocol=protocol, method=method))
    ]
    auto_rows = select(results, protocol=AUTO)
    return (
        [*lines, PlotLine(AUTO, series_look("aligned"), auto_rows)]
        if auto_rows
        else lines
    )


def terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows whose privacy is as claimed."""
    return [row for row in results if row["protocol"] != "printed"]


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the statements of the text beside the results."""
    kernel = select(results, protocol="kernel", quantity="accuracy")
    yield "the paper: AdaptTar is poorest, AdaptSamp clearly best"
    for level in column_levels(kernel):
        scores = {
            row["method"]: row["curvote"] for row in select(kernel, epsilon=level)
        }
        texts = ", ".join(
            f"{find_method(name).label} {scores[name]:.1f}" for name in METHODS
        )
        yield f"  epsilon {level:g}: {texts}"
    yield "the paper: AdaptHomog is strictly worse than AdaptAll"
    apart = [
        f"{_score_gap(kernel, level, 'adapt_homog', other):+.1f}"
        for other in ("adapt_samp", "adapt_all")
        for level in column_levels(kernel)
    ]
    half = len(apart) // 2
    yield f"  AdaptHomog less AdaptSamp, by epsilon: {', '.join(apart[:half])}"
    yield f"  AdaptHomog less AdaptAll, by epsilon: {', '.join(apart[half:])}"


def _score_gap(
    results: Sequence[Row], level: float | None, method: str, other: str
) -> float:
    values = [select(results, epsilon=level, method=it)[0] for it in (method, other)]
    return float(values[0]["curvote"] - values[1]["curvote"])
