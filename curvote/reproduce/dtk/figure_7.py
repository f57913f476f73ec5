"""Figure 7: the hospitals' releases combined for Hungary: accuracy and F1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from matplotlib.figure import Figure

from curvote.reporting.methods import look, method_of
from curvote.reproduce.drawing import Line, against, label_left
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, finished, having, levels, scored

METHODS: Final = ("adapt_samp", "adapt_all", "adapt_homog", "adapt_tar")
AUTO: Final = "auto"
FORMS: Final = (("kernel", "", "-"), ("printed", ", printed", ":"))
# The only numbers in the text, of its best method; it names no epsilon.
PUBLISHED: Final = {"accuracy": 81.0, "f1": 73.0}
BEST: Final = "adapt_samp"


def rows(found: Evidence) -> list[Row]:
    """Return accuracy and F1 of the paper's methods and of `auto`.

    ``protocol`` is ``kernel``, ``printed`` (releases as published) or ``auto``. What
    the paper says stands at its best method, at the largest epsilon.
    """
    last = max(summary["epsilon"] for summary in found.summaries)
    made = []
    for quantity, printed in PUBLISHED.items():
        for summary in found.summaries:
            if summary["protocol"] == AUTO or summary["method"] in METHODS:
                said = summary["method"] == BEST and summary["epsilon"] == last
                row = scored(summary, quantity) | {"setting": None}
                made.append(row | {"published": printed if said else None})
    return finished(made)


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw accuracy and F1; as published in dots."""
    drawn = against(
        {
            "accuracy": _lines(having(given, quantity="accuracy")),
            "F1": _lines(having(given, quantity="f1")),
        }
    )
    label_left(drawn.axes, "%")
    return drawn


def _lines(given: Sequence[Row]) -> list[Line]:
    lines = [
        Line(f"{method_of(method).label}{suffix}", replace(look(method), line=dash), it)
        for protocol, suffix, dash in (
            ("kernel", "", "-"),
            ("printed", ", printed", ":"),
        )
        for method in METHODS
        if (it := having(given, protocol=protocol, method=method))
    ]
    own = having(given, protocol=AUTO)
    return [*lines, Line(AUTO, look("aligned"), own)] if own else lines


def brief(given: Sequence[Row]) -> list[Row]:
    """Return what is private as it says."""
    return [row for row in given if row["protocol"] != "printed"]


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield what the text says beside what is seen."""
    kernel = having(given, protocol="kernel", quantity="accuracy")
    yield "the paper: AdaptTar is poorest, AdaptSamp clearly best"
    for level in levels(kernel):
        mine = {row["method"]: row["curvote"] for row in having(kernel, epsilon=level)}
        told = ", ".join(
            f"{method_of(name).label} {mine[name]:.1f}" for name in METHODS
        )
        yield f"  epsilon {level:g}: {told}"
    yield "the paper: AdaptHomog is strictly worse than AdaptAll"
    apart = [
        f"{_gap(kernel, level, 'adapt_homog', other):+.1f}"
        for other in ("adapt_samp", "adapt_all")
        for level in levels(kernel)
    ]
    half = len(apart) // 2
    yield f"  AdaptHomog less AdaptSamp, by epsilon: {', '.join(apart[:half])}"
    yield f"  AdaptHomog less AdaptAll, by epsilon: {', '.join(apart[half:])}"


def _gap(given: Sequence[Row], level: float | None, one: str, other: str) -> float:
    values = [having(given, epsilon=level, method=it)[0] for it in (one, other)]
    return float(values[0]["curvote"] - values[1]["curvote"])
