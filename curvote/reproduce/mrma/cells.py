"""Figures of MRMA: tables as charts, errors, boxes, total variation, weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.measure import Look
from curvote.reporting import methods, style
from curvote.reproduce.drawing import (
    axis_limits,
    distinct_values,
    draw_points,
    fitting_legend,
    label_y_axes,
    panel_title,
    panels,
)
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, select

LIMIT = 3
_EDGE = 8  # no |z| is drawn beyond
_STEP = 0.2
_LEARNERS = ("mrma", "mr", "all_data", "best_single")  # looks of Table A.1's panels


def figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a method (a learner without noise), and the z of all cells."""
    rows = sorted(rows, key=lambda row: row["representation"] == "initial")
    split = "method" if distinct_values(rows, "epsilon") else "learner"
    names, places = distinct_values(rows, split), _place_labels(rows)
    fig, axes = panels(len(names) + 1, height=3.0)
    for ax, name in zip(axes, names, strict=False):
        selected = select(rows, **{split: name})
        _draw_cells(ax, selected, places, _line_look(name, names))
        panel_title(ax, methods.find_method(name).label)
        ax.set_ylim(axis_limits(rows if split == "method" else selected))
    _draw_scores(axes[-1], rows, places, (split, names))
    for ax in axes:
        _place_axis(ax, places)
    label_y_axes(axes[:-1], "misclassification (%)")
    fitting_legend(fig, _table_handles(rows))
    return fig


def _place_labels(rows: Sequence[Row]) -> list[str]:
    """Return the axis labels: epsilons, or representations and sizes."""
    kinds = distinct_values(rows, "representation")
    if not kinds:
        return [f"{epsilon:g}" for epsilon in sorted(distinct_values(rows, "epsilon"))]
    named = sorted(rows, key=lambda row: kinds.index(row["representation"]))
    return list(dict.fromkeys(_place_label(row) for row in named))


def _place_label(row: Row) -> str:
    if row["epsilon"] is not None:
        return f"{row['epsilon']:g}"
    return " ".join(str(part) for part in (row["representation"], row["d"]) if part)


def _line_look(name: str, names: list[str]) -> Look:
    if name in methods.methods_by_name():
        return methods.series_look(name)
    return methods.series_look(_LEARNERS[names.index(name) % len(_LEARNERS)])


def _draw_cells(ax: Axes, rows: Sequence[Row], places: list[str], look: Look) -> None:
    at = [places.index(_place_label(row)) for row in rows]
    ink = _marker_ink("curvote", look.colour) | {"marker": look.marker or "h"}
    draw_points(ax, at, rows, elinewidth=1.0, **ink)
    for kind, step in (("published", -_STEP), ("corrected", _STEP)):
        placed = [(x + step, row[kind]) for x, row in zip(at, rows, strict=True)]
        visible = [point for point in placed if point[1] is not None]
        ax.plot(
            *zip(*visible, strict=True) if visible else ((), ()), **_marker_ink(kind)
        )
    for x, row in zip(at, rows, strict=True):
        if row["z"] is not None and abs(row["z"]) > LIMIT:
            ax.plot(x, row["curvote"], **_marker_ink("beyond"))


def _marker_ink(kind: str, colour: str = style.INK) -> dict[str, Any]:
    shape = {
        "published": {"marker": "o", "mfc": style.PAPER, "ms": 4.5, "mew": 1.0},
        "curvote": {"marker": "o", "ms": 4.5, "mew": 0},
        "corrected": {"marker": "x", "ms": 4.5, "mew": 1.0, "mec": style.MUTED},
        "beyond": {"marker": "o", "mfc": "none", "ms": 11, "mec": "#c1121f"},
    }
    return {"ls": "", "color": colour, **shape[kind]}


def _draw_scores(
    ax: Axes, rows: Sequence[Row], places: list[str], groups: tuple[str, list[str]]
) -> None:
    """Draw all z scores; a band marks the limit."""
    split, names = groups
    ax.axhspan(-LIMIT, LIMIT, color=style.LINE, alpha=0.6, lw=0)
    ax.axhline(0, color=style.MUTED, lw=0.7)
    for rank, name in enumerate(names):
        selected = [row for row in rows if row[split] == name and row["z"] is not None]
        look = _line_look(name, names)
        step = 0.08 * (rank - (len(names) - 1) / 2)
        ax.plot(
            [places.index(_place_label(row)) + step for row in selected],
            [max(-_EDGE, min(_EDGE, row["z"])) for row in selected],
            ls="",
            marker=look.marker or "h",
            color=look.colour,
            ms=4,
            mew=0,
        )
    beyond = any(abs(row["z"] or 0) > _EDGE for row in rows)
    ax.set_ylim(-_EDGE - 0.5, _EDGE + 0.5)
    ax.set_title("z of every cell" + f", cut at ±{_EDGE}" * beyond)


def _place_axis(ax: Axes, places: list[str]) -> None:
    ax.set_xticks(range(len(places)), places)
    ax.set_xlim(-0.6, len(places) - 0.4)
    ax.grid(axis="y")
    if any(" " in place for place in places):
        ax.tick_params(axis="x", rotation=60, labelsize=7.5)
    else:
        ax.set_xlabel("epsilon (smaller: more private)")


def _table_handles(rows: Sequence[Row]) -> list[Line2D]:
    texts = {
        "published": "printed",
        "curvote": "curvote, as published (± 2 standard errors)",
        "corrected": "curvote, corrected",
        "beyond": f"beyond {LIMIT} standard errors",
    }
    return [
        Line2D([], [], label=text, **_marker_ink(kind, colour))
        for kind, text in texts.items()
        for colour in [style.USED if kind == "curvote" else style.INK]
        if kind != "corrected" or distinct_values(rows, kind)
    ]
