"""Tables and figures of MRMA: printed numbers beside curvote's, errors, theory."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy.special import expit
from scipy.stats import sem

from curvote.advise.mrma import omega, pointwise_utility, total_variation
from curvote.base.errors import UserError
from curvote.base.privacy import label_budget_share
from curvote.chain.measure import Look
from curvote.papers import figure
from curvote.papers.figure import Chart, Series, assigned_looks, looks, method_label
from curvote.papers.reproduction import Entry, Evidence, Labels
from curvote.papers.rows import (
    NAMED,
    Row,
    axis_value,
    column_texts,
    distinct_values,
    percent,
    published_rows,
    select,
    varying_columns,
)
from curvote.pipeline.config import settings
from curvote.pipeline.run.results import missing_to_none
from curvote.pipeline.store.records import RunRecord
from curvote.report import data, style
from curvote.systems.common.settings import Representation

# Axes of a grid with a meaning of their own; the others make up ``setting``.
_OWN_AXES = (settings.PROTOCOL, "form", "d", "representation", "split")
USEFUL = "useful"
# Group 2's slopes point anywhere: nothing can be learnt there.
USEFUL_GROUPS = ("1", "3")
_GROUPS = (None, USEFUL, "1", "2", "3")
_PLACES = ("representation", "d", "learner", "split", "method", "setting")
_CELL = ["protocol", "setting", "epsilon", "learner", "method", "metric"]
REPETITIONS = 500


def rows(
    evidence: Evidence, published: str = "", methods: Sequence[str] = ()
) -> list[Row]:
    """Return the rows of an entry: of every cell of a ``published`` file, else of all.

    ``methods`` are taken, all where there are none. Published, curvote, corrected and
    se are in percent points, se is curvote's. Where a value is printed, ``curvote``
    follows the published definitions and ``corrected`` the right ones; elsewhere
    ``curvote`` follows the right ones. z = (curvote - published) / sqrt(se^2 +
    (100 sd)^2 / 500), None where nothing is printed or no error is known.

    Raises:
        UserError: a printed cell that the pipelines do not compute.
    """
    selected = []
    for row in score_rows(evidence):
        final = "mrma" if row["split"] == "single" else "federated"
        of_method = not methods or row["method"] in methods
        if row["group"] and row["method"] == final if row["split"] else of_method:
            selected.append(row)
    if published:
        cells = published_rows("mrma", published)
        return [_compare_cell(evidence.entry, cell, selected) for cell in cells]
    return sort_rows(row for row in selected if row["form"] != "published")


def score_rows(evidence: Evidence) -> Iterator[Row]:
    """Yield a row of each summary, with the ``form`` that its axes state."""
    for summary in evidence.summaries:
        axes, metric = summary.get("setting", {}), str(summary["metric"])
        representation = axes.get("representation", summary.get("representation"))
        labels = (
            f"{axis}={text}" for axis, text in axes.items() if axis not in _OWN_AXES
        )
        names = ("pipeline", "protocol", "epsilon", "learner")
        yield {name: summary[name] for name in names} | {
            "form": axes.get("form"),
            "setting": " ".join(labels) or None,
            "representation": (
                "initial"
                if summary["pipeline"] == "table-a1-initial"
                else representation
            ),
            "d": int(axes["d"]) if "d" in axes else summary.get("d"),
            "method": summary["method"] if metric == "misclassification" else metric,
            "split": axes.get("split"),
            "group": summary.get("group"),
            "quantity": evidence.entry.quantity,
            "curvote": percent(summary["value"]),
            "se": percent(summary["se"]),
        }


def _compare_cell(entry: Entry, cell: Row, selected: Iterable[Row]) -> Row:
    key = {n: v for n, v in cell.items() if n not in {"misclassification_pct", "sd"}}
    forms = {row["form"]: row for row in select(selected, **key)}
    if not forms:
        named = ", ".join(f"{name} {value}" for name, value in key.items())
        raise UserError(
            f"{entry.name} prints a value for {named}, which pipeline"
            f" {' or '.join(entry.pipelines)} does not compute; take your own of that"
            " name out of pipelines.yaml."
        )
    match = forms.get("published") or next(iter(forms.values()))
    right = forms.get("corrected") if "published" in forms else None
    variance = (100 * (cell.get("sd") or 0)) ** 2 / REPETITIONS
    total = None if match["se"] is None else match["se"] ** 2 + variance
    difference = match["curvote"] - cell["misclassification_pct"]
    return match | {
        "published": cell["misclassification_pct"],
        "corrected": right and right["curvote"],
        "z": difference / math.sqrt(total) if total else None,
    }


def sort_rows(unsorted: Iterable[Row], places: Sequence[str] = _PLACES) -> list[Row]:
    """Sort by group, then by what tells lines apart, as it came; epsilon is last."""
    listed = list(unsorted)
    # Places by first appearance; rows without a value are last.
    ranks = {
        n: {v: i for i, v in enumerate(distinct_values(listed, n))} for n in places
    }
    ranks["method"] = {name: rank for rank, name in enumerate(data.methods_by_name())}

    def sort_key(row: Row) -> tuple[float, ...]:
        return (
            _GROUPS.index(row["group"]),
            *(ranks[name].get(row[name], math.inf) for name in places),
            math.inf if row["epsilon"] is None else row["epsilon"],
        )

    return sorted(listed, key=sort_key)


def refine(record: RunRecord, means: list[Row], scores: pd.DataFrame) -> list[Row]:
    """Return the summaries of a run: its means, and those over the useful groups.

    Each states the rescaling and the size of its setting.
    """
    labels = settings.labels_by_setting(record.config)
    sizes = stated_settings(record.config)
    useful = useful_group_rows(record.pipeline, scores, labels)
    return [
        row | sizes[settings.setting_name(row.get("setting", {}))]
        for row in (*means, *useful)
    ]


def stated_settings(config: dict[str, Any]) -> dict[str | None, Row]:
    """Return the rescaling and the size that each setting states, by its name."""
    rows_of = {}
    for labels, section in settings.expand_settings(config):
        project = Representation.model_validate(section["project"])
        size = {"representation": project.rescale, "d": project.size}
        rows_of[settings.setting_name(labels)] = size
    return rows_of


def useful_group_rows(
    pipeline: str, table: pd.DataFrame, labels: Labels
) -> Iterator[Row]:
    """Yield a score row for each cell: the mean over the useful groups.

    Groups are averaged in each replicate, so that the se of this mean knows that they
    heard of the same classifiers. Without groups there is no row.
    """
    useful_rows = table[table["group"].isin(USEFUL_GROUPS)]
    for names, cell in useful_rows.groupby(_CELL, dropna=False, sort=False):
        # The mean over groups of the mean over their servers, by replicate.
        groups = cell.groupby(["replicate", "group"])["value"].mean()
        means = groups.groupby("replicate").mean()
        se = None if len(means) < 2 else float(means.std(ddof=1) / np.sqrt(len(means)))
        named = dict(zip(_CELL, map(missing_to_none, names), strict=True))
        yield named | {
            "pipeline": pipeline,
            "setting": labels[named["setting"]],
            "group": USEFUL,
            "value": float(means.mean()),
            "se": se,
        }


def conclusions(
    compared: Sequence[Row],
    limit: float = 3.0,
    points: Mapping[str | None, float] | None = None,
) -> Iterator[str]:
    """Yield how many printed cells agree, and the worst one.

    A cell agrees whose ``|z|`` is at most ``limit``, or whose difference is at most the
    ``points`` of its learner.
    """
    granted = points or {}
    scored = [row for row in compared if row["z"] is not None]
    if not scored:
        return

    def gap(row: Row) -> float:
        return abs(float(row["curvote"] - row["published"]))

    inside = sum(
        gap(row) <= granted.get(row["learner"], 0.0) or abs(row["z"]) <= limit
        for row in scored
    )
    assumption = "" if limit == 3 else ", the paper's taken to be like ours,"
    close = ", ".join(f"{name} {most}" for name, most in granted.items())
    yield (
        f"{inside} of {len(scored)} cells within 3 standard errors{assumption}"
        + (f" or within so many points: {close}" if close else "")
    )
    worst = max(compared, key=gap)
    place = column_texts(worst, varying_columns(compared, NAMED))
    where = ", ".join(f"{name} {text}" for name, text in place.items() if text)
    yield f"largest difference: {gap(worst):.2f} points ({where})"


LIMIT = 3
_EDGE = 8  # no |z| is drawn beyond
# Looks of Table A.1's panels, and of the levels of Figure 1.
_FOUR_LOOKS: Final = [
    data.series_look(name) for name in ("mrma", "mr", "all_data", "best_single")
]
# How each value of a cell is marked, and its place beside curvote's.
_MARKS: Final[dict[str, dict[str, Any]]] = {
    "published": {"marker": "o", "mfc": style.PAPER, "ms": 4.5, "mew": 1.0},
    "curvote": {"marker": "o", "ms": 4.5, "mew": 0},
    "corrected": {"marker": "x", "ms": 4.5, "mew": 1.0, "mec": style.MUTED},
    "beyond": {"marker": "o", "mfc": "none", "ms": 11, "mec": "#c1121f"},
}
_STEPS: Final = {"published": -0.2, "corrected": 0.2}


def table_figure(compared: Sequence[Row], _: Evidence) -> Figure:
    """Draw a panel a method (a learner without noise), and the z of all cells."""
    cells = sorted(compared, key=lambda row: row["representation"] == "initial")
    split = "method" if distinct_values(cells, "epsilon") else "learner"
    names = distinct_values(cells, split)
    if split == "method":
        looks = {name: data.series_look(name) for name in names}
        order = sorted(cells, key=lambda row: float(row["epsilon"]))
    else:
        looks = dict(zip(names, chain.from_iterable(repeat(_FOUR_LOOKS)), strict=False))
        kinds = distinct_values(cells, "representation")
        order = sorted(cells, key=lambda row: kinds.index(row["representation"]))
    places = list(dict.fromkeys(map(_place_label, order)))

    def draw(ax: Axes, name: str | None) -> None:
        if name is None:
            _draw_z_scores(ax, cells, places, split, looks)
        else:
            selected = select(cells, **{split: name})
            _draw_cells(ax, selected, places, looks[name])
            limits = figure.axis_limits(cells if split == "method" else selected)
            ax.set_ylim(limits)
        ax.set_xticks(range(len(places)), places)
        ax.set_xlim(-0.6, len(places) - 0.4)
        ax.grid(axis="y")
        if any(" " in place for place in places):
            ax.tick_params(axis="x", rotation=60, labelsize=7.5)
        else:
            ax.set_xlabel("epsilon (smaller: more private)")

    texts = {
        "published": "printed",
        "curvote": "curvote, as published (± 2 standard errors)",
        "corrected": "curvote, corrected",
        "beyond": f"beyond {LIMIT} standard errors",
    }
    if not distinct_values(cells, "corrected"):
        del texts["corrected"]
    handles = []
    for kind, text in texts.items():
        colour = style.USED if kind == "curvote" else style.INK
        ink = {"ls": "", "color": colour, **_MARKS[kind]}
        handles.append(Line2D([], [], label=text, **ink))
    cut = f", cut at ±{_EDGE}" * any(abs(row["z"] or 0) > _EDGE for row in cells)
    chart = figure.draw_panels(
        [*names, None],
        draw,
        3.0,
        handles=handles,
        title=lambda name: method_label(name) if name else f"z of every cell{cut}",
    )
    figure.label_y_axes(chart.axes[:-1], "misclassification (%)")
    return chart


def _place_label(row: Row) -> str:
    """Return a row's label on the axis: its epsilon, or representation and size."""
    if row["epsilon"] is not None:
        return f"{row['epsilon']:g}"
    return " ".join(str(part) for part in (row["representation"], row["d"]) if part)


def _draw_cells(ax: Axes, cells: Sequence[Row], places: list[str], look: Look) -> None:
    at = [places.index(_place_label(row)) for row in cells]
    ink = {
        "ls": "",
        "color": look.colour,
        **_MARKS["curvote"],
        "marker": look.marker or "h",
    }
    figure.draw_points(ax, at, cells, elinewidth=1.0, **ink)
    for kind, step in _STEPS.items():
        placed = [(x + step, row[kind]) for x, row in zip(at, cells, strict=True)]
        visible = [point for point in placed if point[1] is not None]
        points = zip(*visible, strict=True) if visible else ((), ())
        ax.plot(*points, ls="", color=style.INK, **_MARKS[kind])
    for x, row in zip(at, cells, strict=True):
        if row["z"] is not None and abs(row["z"]) > LIMIT:
            ax.plot(x, row["curvote"], ls="", color=style.INK, **_MARKS["beyond"])


def _draw_z_scores(
    ax: Axes,
    cells: Sequence[Row],
    places: list[str],
    split: str,
    looks: Mapping[str, Look],
) -> None:
    """Draw all z scores; a band marks the limit."""
    ax.axhspan(-LIMIT, LIMIT, color=style.LINE, alpha=0.6, lw=0)
    ax.axhline(0, color=style.MUTED, lw=0.7)
    for rank, (name, look) in enumerate(looks.items()):
        scored = [row for row in cells if row[split] == name and row["z"] is not None]
        step = 0.08 * (rank - (len(looks) - 1) / 2)
        at = [places.index(_place_label(row)) + step for row in scored]
        values = [max(-_EDGE, min(_EDGE, row["z"])) for row in scored]
        marker, colour = look.marker or "h", look.colour
        ax.plot(at, values, ls="", marker=marker, color=colour, ms=4, mew=0)
    ax.set_ylim(-_EDGE - 0.5, _EDGE + 0.5)


# Figures 2, 4, 5: a panel a learner, a line a method.
method_figure = Chart(["learner"], [Series(["method"])])

_SPLITS: Final = {
    "clients": "splitting clients",
    "budget": "splitting the budget",
    "single": "each server alone",
}
_SPLIT_LOOKS, _RANDOM_LOOKS = looks("mrma-splits"), looks("mrma-random")
# Figure 3: the useful groups' error by split, that of group 2 in grey.
split_figure = Chart(
    ["learner"],
    [
        Series(
            ["split"],
            lambda name: _SPLIT_LOOKS.get(name, data.OTHER_LOOK),
            lambda name: _SPLITS.get(name, name),
            {"group": USEFUL},
        ),
        Series(
            ["split"],
            lambda name: _RANDOM_LOOKS.get(name, _RANDOM_LOOKS["clients"]),
            "group 2, {}".format,
            {"group": "2"},
        ),
    ],
)


def case_figure(results: Sequence[Row], evidence: Evidence) -> Figure:
    """Draw tables A.2 and A.3: a panel a learner and method, a line a case."""
    labels = {}
    for sizes in published_rows("mrma", "mrma_cases_A2_A3.csv"):
        case = f"case {sizes['case']}"
        texts = (f"{name} {sizes[name]}" for name in ("N0", "N1", "n0", "n1", "B"))
        labels[case.replace(" ", "=")] = f"{case}: {', '.join(texts)}"
    series = Series(
        ["setting"],
        assigned_looks(distinct_values(results, "setting"), "mrma-cases"),
        lambda setting: labels.get(setting, setting),
        changes={"above": 4},
    )
    chart = Chart(
        ["learner", "method"],
        [series],
        lambda learner, method: f"{learner}, {method_label(method)}",
        columns=len(distinct_values(results, "method")),
    )
    return chart(results)


_WIDTH = 0.34


def box_figure(results: Sequence[Row], evidence: Evidence) -> Figure:
    """Draw a panel a learner: boxes over replicates by epsilon and representation.

    They are drawn from the ``replicates`` that were found.
    """
    kinds = distinct_values(results, "representation")
    colours = dict(zip(kinds, style.CLASS_COLOURS, strict=False))
    levels = [*sorted(distinct_values(results, "epsilon")), math.inf]  # no privacy
    scores = evidence.replicates.fillna({"epsilon": math.inf})
    scores = scores[scores["method"].isin(distinct_values(results, "method"))]

    def draw(ax: Axes, learner: str) -> None:
        of_learner = scores[scores["learner"] == learner]
        for rank, (kind, colour) in enumerate(colours.items()):
            shift = _WIDTH * 1.1 * (rank - (len(kinds) - 1) / 2)
            of_kind = of_learner[of_learner["representation"] == kind]
            epsilon, values = of_kind["epsilon"], 100 * of_kind["value"].astype(float)
            line = {"color": colour, "linewidth": 1.0}
            face = {"facecolor": f"{colour}55", "edgecolor": colour, "linewidth": 1.0}
            ax.boxplot(
                [values[epsilon == level].tolist() for level in levels],
                positions=[at + shift for at in range(len(levels))],
                widths=_WIDTH,
                manage_ticks=False,
                patch_artist=True,
                boxprops=face,
                medianprops={"color": style.INK, "linewidth": 1.2},
                whiskerprops=line,
                capprops=line,
                flierprops={"marker": ".", "markersize": 3, "markeredgecolor": colour},
            )
        texts = [*(f"{level:g}" for level in levels[:-1]), "none"]
        ax.set_xticks(range(len(levels)), texts)
        ax.set_xlim(-0.6, len(levels) - 0.4)
        ax.set_ylim(0, 100)
        ax.set_xlabel("epsilon (none: no privacy)")
        ax.grid(axis="y")

    patches = [Patch(color=colour, label=kind) for kind, colour in colours.items()]
    learners = distinct_values(results, "learner")
    return figure.draw_panels(learners, draw, 3.2, y=figure.ERROR, handles=patches)


def spread_rows(evidence: Evidence) -> list[Row]:
    """Return the mean accuracy of classifiers, and that with each bad one reversed."""
    scores = evidence.replicates[evidence.replicates["method"] == "weak"]
    listed: list[Row] = []
    for key, cell in scores.groupby(["reports", "learner", "epsilon"], sort=False):
        accuracy = 1 - cell["value"].to_numpy(dtype=float)
        named = dict(zip(("setting", "learner", "epsilon"), key, strict=True))
        named |= {"pipeline": "figure-a2", "quantity": evidence.entry.quantity}
        best = np.maximum(accuracy, 1 - accuracy)
        for text, values in (("as trained", accuracy), ("reversed if bad", best)):
            score = {"curvote": 100 * values.mean(), "se": 100 * sem(values)}
            listed.append(named | {"setting": f"{key[0]} reports, {text}"} | score)
    return listed


def spread_figure(results: Sequence[Row], evidence: Evidence) -> Figure:
    """Draw a panel a learner: how accurate single classifiers are, and their means."""
    scores = evidence.replicates[evidence.replicates["method"] == "weak"]
    levels = sorted(distinct_values(results, "epsilon"))
    colours = dict(zip(scores["reports"].unique(), style.CLASS_COLOURS, strict=False))

    def draw(ax: Axes, learner: str) -> None:
        for rank, (reports, colour) in enumerate(colours.items()):
            members = (scores["reports"] == reports) & (scores["learner"] == learner)
            cells = scores[members].groupby("epsilon")["value"]
            values = [100 * (1 - cells.get_group(at).to_numpy(float)) for at in levels]
            places = np.arange(len(levels)) + 0.4 * (rank - (len(colours) - 1) / 2)
            bodies: Any = ax.violinplot(values, places, widths=0.38, showextrema=False)
            for body in bodies["bodies"]:
                body.set(facecolor=colour, edgecolor="none", alpha=0.5)
            means = [part.mean() for part in values]
            ax.plot(places, means, ls="--", marker="_", ms=8, color=colour)
        ax.axhline(50, color=style.MUTED, lw=0.7)
        ax.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
        ax.set_ylim(0, 100)
        ax.set_xlabel("epsilon (smaller: more private)")

    handles = [
        Line2D([], [], color=colour, ls="--", label=f"{reports} reports, mean dashed")
        for reports, colour in colours.items()
    ]
    learners = distinct_values(results, "learner")
    return figure.draw_panels(learners, draw, 3.2, y=figure.ACCURACY, handles=handles)


def variation_figure(results: Sequence[Row], evidence: Evidence) -> Figure:
    """Draw the closed form as lines and what the reports show as points."""
    rule = evidence.configs[0]["privatize"]["label_share"]
    levels = sorted(distinct_values(results, "epsilon"))
    look_of = assigned_looks(sorted(distinct_values(results, "d")), "mrma-sizes")

    def draw(ax: Axes, _: str) -> None:
        for d, look in look_of.items():
            share = label_budget_share(rule, d)  # of epsilon, spent on labels
            at = np.geomspace(levels[0], levels[-1], 200).tolist()
            exact_values = [100 * total_variation(d, (1 - share) * e) for e in at]
            ax.plot(at, exact_values, color=look.colour, lw=1.3)
            selected, ink = select(results, d=d), style.line_style(look)
            epsilons = [row["epsilon"] for row in selected]
            figure.draw_points(ax, epsilons, selected, zorder=4, **ink | {"ls": ""})
        figure.log_axis(ax, levels)
        ax.set_ylim(0, 103)
        ax.grid(axis="y")

    legend = {f"d = {d}": style.line_style(look) for d, look in look_of.items()}
    legend["exact"] = {"color": style.MUTED, "lw": 1.3}
    legend["from reports"] = {"color": style.MUTED, "marker": "o", "ls": ""}
    handles = [Line2D([], [], label=label, **ink) for label, ink in legend.items()]
    return figure.draw_panels([""], draw, 4.0, y="total variation (%)", handles=handles)


LEVELS = (10, 1, 0.1, 0.01)


def weight_figure(results: Sequence[Row], evidence: Evidence) -> Figure:
    """Draw a heatmap of omega for each epsilon, and g by theory and reports."""
    config, z0 = evidence.configs[0], np.linspace(-2, 2, 161)
    share = label_budget_share(config["privatize"]["label_share"], 1)

    def class_probability(z: Any) -> Any:
        return expit(config["source"]["slope"] * z)

    def draw_weights(ax: Axes, level: float) -> None:
        z, rows_z0 = np.linspace(-1, 1, 201), np.linspace(-2, 2, 401)
        weights = omega(z[None, :], rows_z0[:, None], level)
        ink: dict[str, Any] = {"cmap": "cividis", "shading": "nearest"}
        mesh = ax.pcolormesh(z, rows_z0, weights, rasterized=True, **ink)
        ax.set_xlabel("value z")
        ax.set_ylabel("report z0")
        bar = ax.figure.colorbar(mesh, ax=ax, shrink=0.9, aspect=18)
        bar.outline.set_visible(False)

    def draw(ax: Axes, level: float | None) -> None:
        if level is not None:
            draw_weights(ax, level)
            return
        handles = []
        levels = sorted(distinct_values(results, "epsilon"), reverse=True)
        for epsilon, look in zip(levels, _FOUR_LOOKS, strict=False):
            selected, ink = select(results, epsilon=epsilon), style.line_style(look)
            at = [axis_value(row, "z0") for row in selected]
            figure.draw_points(ax, at, selected, **ink | {"ls": ""})
            line = ink | {"ls": "-", "lw": 1}
            handles.append(Line2D([], [], label=f"epsilon {epsilon:g}", **line))
            g = pointwise_utility(
                class_probability,
                z0,
                epsilon_z=(1 - share) * epsilon,
                keep=float(expit(share * epsilon)),
            )
            ax.plot(z0.tolist(), (100 * g).tolist(), color=look.colour, lw=1)
        ax.set_xlabel("report z0")
        ax.set_ylabel("g (%)")
        ax.grid(axis="y")
        # In the free place beside it, which the layout must not take into account.
        beside = ax.legend(
            handles=handles, loc="center left", bbox_to_anchor=(1.1, 0.5)
        )
        beside.set_in_layout(False)

    def title(level: float | None) -> str:
        weights = f"weight omega, epsilon {level:g}" if level is not None else ""
        return weights or "g(z0), from reports and by theory"

    return figure.draw_panels([*LEVELS, None], draw, 3.1, handles=(), title=title)
