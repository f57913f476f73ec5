"""Figure of the audit: the claim, the law's loss and the proven bound of each row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from curvote.audit.row import BROKEN, Row

INK, MUTED, LINE = "#22262b", "#6a717b", "#e2e5e9"
GOOD, BAD, PROVED = "#009e73", "#d55e00", "#0072b2"
RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "text.color": INK,
    "text.parse_math": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "curvote",
}
ROW_INCHES = 0.17
LEAST = 0.05


def write_figure(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write audit.json, audit.svg and audit.png to ``folder``; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "audit.json"
    text = json.dumps([row.to_json() for row in rows], indent=1)
    table.write_text(text + "\n", encoding="utf-8")
    return [table, *_draw_rows(rows, folder)]


def _draw_rows(rows: Sequence[Row], folder: Path) -> list[Path]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    groups = _panel_groups(rows)
    if not groups:
        return []
    paths = [folder / "audit.svg", folder / "audit.png"]
    with mpl.rc_context(RC):
        columns = _column_sizes(groups)
        figure = Figure(figsize=_figure_size(columns), layout="constrained")
        axes = _panel_axes(figure, columns)
        for ax, (title, group) in zip(axes, groups.items(), strict=True):
            _draw_panel(ax, title, group)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        for path in paths:
            date = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=160, metadata=date)
    return paths


def _column_sizes(groups: Mapping[str, list[Row]]) -> list[list[int]]:
    """Return the sizes of the panels in each column: shipped ones, then broken ones."""
    sides = groupby(groups.values(), key=lambda group: group[0].broken)
    return [[len(group) for group in side] for _, side in sides]


def _figure_size(columns: list[list[int]]) -> tuple[float, float]:
    tallest = max(ROW_INCHES * sum(sizes) + 0.8 * len(sizes) for sizes in columns)
    return 5.6 * len(columns), tallest + 0.7


def _panel_axes(figure: Any, columns: list[list[int]]) -> list[Any]:
    grid = figure.add_gridspec(1, len(columns))
    axes: list[Any] = []
    for i, sizes in enumerate(columns):
        ratios = [size + 2 for size in sizes]
        column = grid[i].subgridspec(len(sizes), 1, height_ratios=ratios)
        axes += [figure.add_subplot(column[j]) for j in range(len(sizes))]
    return axes


def _panel_groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the panels: shipped ones by epsilon, then the broken twins."""
    groups: dict[str, list[Row]] = {}
    drawn_rows = [row for row in rows if row.lower_bound is not None]
    for row in sorted(drawn_rows, key=lambda row: row.broken):
        kind = "broken on purpose" if row.broken else "shipped"
        groups.setdefault(f"{kind}, epsilon {row.claimed:g}", []).append(row)
    worst = attrgetter("lower_bound", "mechanism")
    return {title: sorted(group, key=worst) for title, group in groups.items()}


def _draw_panel(ax: Any, title: str, rows: Sequence[Row]) -> None:
    places = range(len(rows))
    claimed, broken = rows[0].claimed, rows[0].broken
    proved = [max(row.lower_bound or 0.0, LEAST if broken else 0.0) for row in rows]
    ax.axvline(claimed, color=INK, lw=1, label="claimed", zorder=1)
    ax.hlines(places, 0, proved, color=LINE, lw=1, zorder=0)
    declared = {"marker": "|", "s": 60, "color": GOOD}
    ax.scatter([r.exact for r in rows], places, **declared, label="loss of the law")
    above = [bound > claimed for bound in proved]
    colours = [BAD if over else PROVED for over in above]
    ax.scatter(proved, places, s=14, c=colours, zorder=3)
    ax.scatter([], [], s=14, color=PROVED, label="proved by draws")
    ax.scatter([], [], s=14, color=BAD, label="proved by draws, above the claim")
    ax.set_ylim(-0.7, len(rows) - 0.3)
    _label_rows(ax, rows)
    _format_axis(ax, claimed, max(proved), broken=broken)
    ax.set_title(title)


def _label_rows(ax: Any, rows: Sequence[Row]) -> None:
    """Label the rows, broken twins with the checks that caught them."""
    names = [row.mechanism.removeprefix(BROKEN) for row in rows]
    ax.set_yticks(range(len(rows)), names)
    for i, (label, row) in enumerate(zip(ax.get_yticklabels(), rows, strict=True)):
        label.set_color(INK if row.good else BAD)
        if row.caught_by:
            caught_text = ", ".join(row.caught_by)
            side = ax.get_yaxis_transform()
            ax.text(
                1.02, i, caught_text, transform=side, va="center", color=MUTED, size=6.5
            )


def _format_axis(ax: Any, claimed: float, most: float, *, broken: bool) -> None:
    if broken:
        ax.set_xscale("log")
        ax.set_xlim(LEAST, max(most, claimed) * 1.3)
        ticks = [claimed * 2**k for k in range(-2, 6, 2) if claimed * 2**k < most * 1.3]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        ax.set_xticks([], minor=True)
        ax.set_xlabel("epsilon (logarithmic)")
    else:
        ax.set_xlim(0, max(most, claimed) * 1.1)
        ax.set_xlabel("epsilon")
