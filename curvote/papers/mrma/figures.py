"""Figures of MRMA: tables as charts, errors, boxes, total variation, weights."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy.special import expit

from curvote.base.errors import InternalError
from curvote.base.privacy import label_budget_share
from curvote.chain.measure import Look
from curvote.papers import drawing
from curvote.papers.mrma.entries import USEFUL, printed_cases
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, distinct_values, select
from curvote.report import data, style

LIMIT = 3
_EDGE = 8  # no |z| is drawn beyond
_STEP = 0.2
_LEARNERS = ("mrma", "mr", "all_data", "best_single")  # looks of Table A.1's panels


def table_figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a method (a learner without noise), and the z of all cells."""
    rows = sorted(rows, key=lambda row: row["representation"] == "initial")
    split = "method" if distinct_values(rows, "epsilon") else "learner"
    names, places = distinct_values(rows, split), _place_labels(rows)
    fig, axes = drawing.panels(len(names) + 1, height=3.0)
    for ax, name in zip(axes, names, strict=False):
        selected = select(rows, **{split: name})
        _draw_cells(ax, selected, places, _line_look(name, names))
        drawing.panel_title(ax, data.find_method(name).label)
        ax.set_ylim(drawing.axis_limits(rows if split == "method" else selected))
    _draw_scores(axes[-1], rows, places, (split, names))
    for ax in axes:
        ax.set_xticks(range(len(places)), places)
        ax.set_xlim(-0.6, len(places) - 0.4)
        ax.grid(axis="y")
        if any(" " in place for place in places):
            ax.tick_params(axis="x", rotation=60, labelsize=7.5)
        else:
            ax.set_xlabel("epsilon (smaller: more private)")
    drawing.label_y_axes(axes[:-1], "misclassification (%)")
    texts = {
        "published": "printed",
        "curvote": "curvote, as published (± 2 standard errors)",
        "corrected": "curvote, corrected",
        "beyond": f"beyond {LIMIT} standard errors",
    }
    handles = []
    for kind, text in texts.items():
        if kind != "corrected" or distinct_values(rows, kind):
            colour = style.USED if kind == "curvote" else style.INK
            handles.append(Line2D([], [], label=text, **_marker_ink(kind, colour)))
    drawing.fitting_legend(fig, handles)
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
    if name in data.methods_by_name():
        return data.series_look(name)
    return data.series_look(_LEARNERS[names.index(name) % len(_LEARNERS)])


def _draw_cells(ax: Axes, rows: Sequence[Row], places: list[str], look: Look) -> None:
    at = [places.index(_place_label(row)) for row in rows]
    ink = _marker_ink("curvote", look.colour) | {"marker": look.marker or "h"}
    drawing.draw_points(ax, at, rows, elinewidth=1.0, **ink)
    for kind, step in (("published", -_STEP), ("corrected", _STEP)):
        placed = [(x + step, row[kind]) for x, row in zip(at, rows, strict=True)]
        visible = [point for point in placed if point[1] is not None]
        points = zip(*visible, strict=True) if visible else ((), ())
        ax.plot(*points, **_marker_ink(kind))
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
        at = [places.index(_place_label(row)) + step for row in selected]
        values = [max(-_EDGE, min(_EDGE, row["z"])) for row in selected]
        marker, colour = look.marker or "h", look.colour
        ax.plot(at, values, ls="", marker=marker, color=colour, ms=4, mew=0)
    beyond = any(abs(row["z"] or 0) > _EDGE for row in rows)
    ax.set_ylim(-_EDGE - 0.5, _EDGE + 0.5)
    ax.set_title("z of every cell" + f", cut at ±{_EDGE}" * beyond)


_SPLITS = {
    "clients": Look("#d55e00", "o", width=2.4, size=6, above=6),
    "budget": Look("#0072b2", "s", width=1.6),
    "single": Look("#009e73", "^", "--", width=1.6, size=5.5),
}
_LABELS = {
    "clients": "splitting clients",
    "budget": "splitting the budget",
    "single": "each server alone",
}
_DASHES = {"budget": "--", "single": ":"}
_RANDOM = "2"  # the group whose slopes point anywhere
_CASES = (
    Look("#d55e00", "o", above=4),
    Look("#0072b2", "s", above=4),
    Look("#009e73", "^", size=5, above=4),
    Look("#cc79a7", "D", size=4, above=4),
    Look("#8a6a4a", "v", size=5, above=4),
)
_SIZES = ("N0", "N1", "n0", "n1", "B")


def method_figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw figures 2, 4, 5: a panel a learner, a line a method."""
    charts: dict[str, list[drawing.PlotLine]] = {}
    for learner in distinct_values(rows, "learner"):
        selected = [row for row in rows if row["learner"] in {learner, None}]
        charts[learner] = []
        for method in distinct_values(selected, "method"):
            label, look = data.find_method(method).label, data.series_look(method)
            line = drawing.PlotLine(label, look, select(selected, method=method))
            charts[learner].append(line)
    return drawing.line_panels(charts)


def split_figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw figure 3: the useful groups' error by split, group 2 in grey."""
    charts = {}
    for learner in distinct_values(rows, "learner"):
        useful_lines, random_lines = [], []
        for split in distinct_values(select(rows, learner=learner), "split"):
            useful, random = (
                select(rows, learner=learner, group=group, split=split)
                for group in (USEFUL, _RANDOM)
            )
            look, dash = _SPLITS.get(split, data.OTHER_LOOK), _DASHES.get(split, "-")
            useful_lines.append(
                drawing.PlotLine(_LABELS.get(split, split), look, useful)
            )
            grey = replace(look, colour=style.UNUSED, marker="", line=dash)
            grey = replace(grey, width=1.1, above=2)
            random_lines.append(drawing.PlotLine(f"group 2, {split}", grey, random))
        charts[learner] = useful_lines + random_lines
    return drawing.line_panels(charts)


def case_figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw tables A.2 and A.3: a panel a learner and method, a line a case."""
    printed, other = printed_cases(), replace(data.OTHER_LOOK, above=4)
    labels, looks = {}, {}
    for setting, look in zip_longest(distinct_values(rows, "setting"), _CASES):
        if setting is not None:
            case = setting.removeprefix("case=")
            sizes = [
                f"{name} {printed[case][name]}" for name in _SIZES if case in printed
            ]
            labels[setting] = f"case {case}: {', '.join(sizes)}" if sizes else setting
            looks[setting] = look or other
    charts = {}
    for learner, method in dict.fromkeys(
        (row["learner"], row["method"]) for row in rows
    ):
        selected = select(rows, learner=learner, method=method)
        charts[f"{learner}, {data.find_method(method).label}"] = [
            drawing.PlotLine(label, looks[setting], select(selected, setting=setting))
            for setting, label in labels.items()
        ]
    return drawing.line_panels(charts, columns=len(distinct_values(rows, "method")))


_WIDTH = 0.34


def box_figure(rows: Sequence[Row], evidence: Evidence | None = None) -> Figure:
    """Draw a panel a learner: boxes over replicates by epsilon and representation.

    They are drawn from the ``replicates`` that were found.
    """
    if evidence is None:
        raise InternalError("boxes are drawn from the values of each replicate")
    kinds = distinct_values(rows, "representation")
    colours = dict(zip(kinds, style.CLASS_COLOURS, strict=False))
    levels: list[float | None] = [*sorted(distinct_values(rows, "epsilon")), None]
    names = distinct_values(rows, "learner")
    replicates = evidence.replicates
    replicates = replicates[replicates["method"].isin(distinct_values(rows, "method"))]
    fig, axes = drawing.panels(len(names), height=3.2)
    for ax, name in zip(axes, names, strict=True):
        learner_rows = replicates[replicates["learner"] == name]
        for rank, (kind, colour) in enumerate(colours.items()):
            shift = _WIDTH * 1.1 * (rank - (len(kinds) - 1) / 2)
            kind_rows = learner_rows[learner_rows["representation"] == kind]
            values = [_replicate_values(kind_rows, level) for level in levels]
            line = {"color": colour, "linewidth": 1.0}
            face = {"facecolor": f"{colour}55", "edgecolor": colour, "linewidth": 1.0}
            ax.boxplot(
                values,
                positions=[at + shift for at in range(len(values))],
                widths=_WIDTH,
                manage_ticks=False,
                patch_artist=True,
                boxprops=face,
                medianprops={"color": style.INK, "linewidth": 1.2},
                whiskerprops=line,
                capprops=line,
                flierprops={"marker": ".", "markersize": 3, "markeredgecolor": colour},
            )
        texts = ["none" if level is None else f"{level:g}" for level in levels]
        ax.set_xticks(range(len(levels)), texts)
        ax.set_xlim(-0.6, len(levels) - 0.4)
        ax.set_ylim(0, 100)
        ax.set_xlabel("epsilon (none: no privacy)")
        ax.grid(axis="y")
        drawing.panel_title(ax, name)
    drawing.label_y_axes(axes)
    drawing.fitting_legend(
        fig, [Patch(color=colours[kind], label=kind) for kind in colours]
    )
    return fig


def _replicate_values(table: pd.DataFrame, level: float | None) -> list[float]:
    there = table["epsilon"].isna() if level is None else table["epsilon"] == level
    return [100 * float(value) for value in table.loc[there, "value"]]


_VARIATION_LOOKS = (
    Look("#d55e00", "o"),
    Look("#0072b2", "s"),
    Look("#009e73", "^", size=5),
    Look("#cc79a7", "D", size=4),
)


def variation_figure(rows: Sequence[Row], evidence: Evidence | None = None) -> Figure:
    """Draw the closed form as lines and what the reports show as points."""
    from curvote.advise.mrma import total_variation

    fig, (ax,) = drawing.panels(1, height=4.0)
    dimensions = sorted(distinct_values(rows, "d"))
    levels = sorted(distinct_values(rows, "epsilon"))
    looks = dict(zip(dimensions, _VARIATION_LOOKS, strict=False))
    handles = []
    for d in dimensions:
        look = looks.get(d, data.OTHER_LOOK)
        share = 0.0  # of epsilon, which the run's clients spent on labels
        if evidence and evidence.configs:
            rule = evidence.configs[0]["privatize"]["label_share"]
            share = label_budget_share(rule, d)
        at = [float(e) for e in np.geomspace(levels[0], levels[-1], 200)]
        exact_values = [100 * total_variation(d, (1 - share) * e) for e in at]
        ax.plot(at, exact_values, color=look.colour, lw=1.3)
        selected, ink = select(rows, d=d), style.line_style(look)
        epsilons = [row["epsilon"] for row in selected]
        drawing.draw_points(ax, epsilons, selected, zorder=4, **ink | {"ls": ""})
        handles.append(Line2D([], [], label=f"d = {d}", **ink))
    drawing.log_axis(ax, levels)
    ax.set_ylim(0, 103)
    ax.grid(axis="y")
    ax.set_ylabel("total variation (%)")
    exact = Line2D([], [], color=style.MUTED, lw=1.3, label="exact")
    dots = Line2D([], [], color=style.MUTED, marker="o", ls="", label="from reports")
    drawing.fitting_legend(fig, [*handles, exact, dots])
    return fig


LEVELS = (10, 1, 0.1, 0.01)
_WEIGHT_LOOKS = [
    data.series_look(name) for name in ("mrma", "mr", "all_data", "best_single")
]


def weight_figure(rows: Sequence[Row], evidence: Evidence | None = None) -> Figure:
    """Draw a heatmap of omega for each epsilon, and g by theory and reports."""
    from curvote.advise.mrma import omega

    fig, axes = drawing.panels(len(LEVELS) + 1, height=3.1)
    for ax, level in zip(axes, LEVELS, strict=False):
        z, z0 = np.linspace(-1, 1, 201), np.linspace(-2, 2, 401)
        weights = omega(z[None, :], z0[:, None], level)
        mesh = ax.pcolormesh(
            z, z0, weights, cmap="cividis", shading="nearest", rasterized=True
        )
        ax.set_title(f"weight omega, epsilon {level:g}")
        ax.set_xlabel("value z")
        ax.set_ylabel("report z0")
        bar = fig.colorbar(mesh, ax=ax, shrink=0.9, aspect=18)
        bar.outline.set_visible(False)
    config = evidence.configs[0] if evidence and evidence.configs else None
    _draw_agreement(axes[-1], rows, config)
    return fig


def _class_probability(slope: float, z: Any) -> Any:
    return expit(slope * z)


def _draw_agreement(
    ax: Axes, rows: Sequence[Row], config: dict[str, Any] | None
) -> None:
    from curvote.advise.mrma import pointwise_utility

    handles = []
    levels = sorted(distinct_values(rows, "epsilon"), reverse=True)
    for level, look in zip(levels, _WEIGHT_LOOKS, strict=False):
        selected = select(rows, epsilon=level)
        ink = style.line_style(look) | {"ls": ""}
        at = [float(row["setting"].removeprefix("z0=")) for row in selected]
        drawing.draw_points(ax, at, selected, **ink)
        handles.append(Line2D([], [], label=f"epsilon {level:g}", **ink))
        if config:
            share = label_budget_share(config["privatize"]["label_share"], 1)
            z0 = np.linspace(-2, 2, 161)
            g = pointwise_utility(
                partial(_class_probability, config["source"]["slope"]),
                z0,
                epsilon_z=(1 - share) * level,
                keep=float(expit(share * level)),
            )
            ax.plot(z0.tolist(), (100 * g).tolist(), color=look.colour, lw=1)
            handles[-1].set_linestyle("-")
            handles[-1].set_linewidth(1)
    ax.set_title("g(z0), from reports" + " and by theory" * bool(config))
    ax.set_xlabel("report z0")
    ax.set_ylabel("g (%)")
    ax.grid(axis="y")
    # In the free place beside it, which the layout must not take into account.
    beside = ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.1, 0.5))
    beside.set_in_layout(False)
