"""Figure 7: hospitals' releases combined for Hungary: accuracy and F1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from matplotlib.figure import Figure

from curvote.papers.drawing import PlotLine, line_panels
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, column_levels, completed, score_row, select
from curvote.report.data import find_method, series_look

METHODS: Final = ("adapt_samp", "adapt_all", "adapt_homog", "adapt_tar")
AUTO: Final = "auto"
FORMS: Final = (("kernel", "", "-"), ("printed", ", printed", ":"))
# The only numbers in the text, of its best method; it names no epsilon.
PUBLISHED: Final = {"accuracy": 81.0, "f1": 73.0}
BEST: Final = "adapt_samp"


@completed
def rows(_: str, evidence: Evidence) -> Iterator[Row]:
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


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
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


def terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows whose privacy is as claimed."""
    return [row for row in results if row["protocol"] != "printed"]


def conclusions(results: Sequence[Row]) -> Iterator[str]:
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
