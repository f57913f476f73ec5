"""Tables: printed and computed values of every cell, and their z."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.measure import Look
from curvote.reporting import methods, style
from curvote.reproduce.drawing import (
    distinct,
    fitting_legend,
    head,
    label_left,
    limits,
    panels,
    points,
)
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, having

LIMIT = 3
_EDGE = 8  # no |z| is drawn beyond
_STEP = 0.2
_LEARNERS = ("mrma", "mr", "all_data", "best_single")  # looks of Table A.1's panels


def figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a method (a learner without noise), and the z of all cells."""
    rows = sorted(rows, key=lambda row: row["representation"] == "initial")
    split = "method" if distinct(rows, "epsilon") else "learner"
    names, places = distinct(rows, split), _places(rows)
    drawn, axes = panels(len(names) + 1, height=3.0)
    for ax, name in zip(axes, names, strict=False):
        mine = having(rows, **{split: name})
        _cells(ax, mine, places, _look(name, names))
        head(ax, methods.method_of(name).label)
        ax.set_ylim(limits(rows if split == "method" else mine))
    _scores(axes[-1], rows, places, (split, names))
    for ax in axes:
        _axis(ax, places)
    label_left(axes[:-1], "misclassification (%)")
    fitting_legend(drawn, _handles(rows))
    return drawn


def _places(rows: Sequence[Row]) -> list[str]:
    """Return what stands under the points: epsilons, or representations and sizes."""
    kinds = distinct(rows, "representation")
    if not kinds:
        return [f"{epsilon:g}" for epsilon in sorted(distinct(rows, "epsilon"))]
    named = sorted(rows, key=lambda row: kinds.index(row["representation"]))
    return list(dict.fromkeys(_place(row) for row in named))


def _place(row: Row) -> str:
    if row["epsilon"] is not None:
        return f"{row['epsilon']:g}"
    return " ".join(str(part) for part in (row["representation"], row["d"]) if part)


def _look(name: str, names: list[str]) -> Look:
    if name in methods.known():
        return methods.look(name)
    return methods.look(_LEARNERS[names.index(name) % len(_LEARNERS)])


def _cells(ax: Axes, rows: Sequence[Row], places: list[str], look: Look) -> None:
    at = [places.index(_place(row)) for row in rows]
    ink = _ink("curvote", look.colour) | {"marker": look.marker or "h"}
    points(ax, at, rows, elinewidth=1.0, **ink)
    for kind, step in (("published", -_STEP), ("corrected", _STEP)):
        known = [(x + step, row[kind]) for x, row in zip(at, rows, strict=True)]
        shown = [point for point in known if point[1] is not None]
        ax.plot(*zip(*shown, strict=True) if shown else ((), ()), **_ink(kind))
    for x, row in zip(at, rows, strict=True):
        if row["z"] is not None and abs(row["z"]) > LIMIT:
            ax.plot(x, row["curvote"], **_ink("beyond"))


def _ink(kind: str, colour: str = style.INK) -> dict[str, Any]:
    shape = {
        "published": {"marker": "o", "mfc": style.PAPER, "ms": 4.5, "mew": 1.0},
        "curvote": {"marker": "o", "ms": 4.5, "mew": 0},
        "corrected": {"marker": "x", "ms": 4.5, "mew": 1.0, "mec": style.MUTED},
        "beyond": {"marker": "o", "mfc": "none", "ms": 11, "mec": "#c1121f"},
    }
    return {"ls": "", "color": colour, **shape[kind]}


def _scores(
    ax: Axes, rows: Sequence[Row], places: list[str], groups: tuple[str, list[str]]
) -> None:
    """Draw every z; the band holds what is within the limit."""
    split, names = groups
    ax.axhspan(-LIMIT, LIMIT, color=style.LINE, alpha=0.6, lw=0)
    ax.axhline(0, color=style.MUTED, lw=0.7)
    for rank, name in enumerate(names):
        mine = [row for row in rows if row[split] == name and row["z"] is not None]
        look = _look(name, names)
        step = 0.08 * (rank - (len(names) - 1) / 2)
        ax.plot(
            [places.index(_place(row)) + step for row in mine],
            [max(-_EDGE, min(_EDGE, row["z"])) for row in mine],
            ls="",
            marker=look.marker or "h",
            color=look.colour,
            ms=4,
            mew=0,
        )
    beyond = any(abs(row["z"] or 0) > _EDGE for row in rows)
    ax.set_ylim(-_EDGE - 0.5, _EDGE + 0.5)
    ax.set_title("z of every cell" + f", cut at ±{_EDGE}" * beyond)


def _axis(ax: Axes, places: list[str]) -> None:
    ax.set_xticks(range(len(places)), places)
    ax.set_xlim(-0.6, len(places) - 0.4)
    ax.grid(axis="y")
    if any(" " in place for place in places):
        ax.tick_params(axis="x", rotation=60, labelsize=7.5)
    else:
        ax.set_xlabel("epsilon (smaller: more private)")


def _handles(rows: Sequence[Row]) -> list[Line2D]:
    texts = {
        "published": "printed",
        "curvote": "curvote, as published (± 2 standard errors)",
        "corrected": "curvote, corrected",
        "beyond": f"beyond {LIMIT} standard errors",
    }
    return [
        Line2D([], [], label=text, **_ink(kind, colour))
        for kind, text in texts.items()
        for colour in [style.USED if kind == "curvote" else style.INK]
        if kind != "corrected" or distinct(rows, kind)
    ]
