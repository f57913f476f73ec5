"""Page sections on scores: the cells they show, measures, the train-test matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.axis import Value
from curvote.chain.measure import Look
from curvote.messages.measures import MAJORITY, MISCLASSIFICATION
from curvote.pipeline.run.results import RunView
from curvote.report import figures, style
from curvote.report.data import (
    epsilon_distance,
    find_method,
    grid_setting,
    learners,
    sorted_levels,
)
from curvote.report.section import Section
from curvote.systems.common.page.by_class import draw_matrix
from curvote.systems.transfer.clean.system import METHODS as CLEAN
from curvote.systems.transfer.measures import BALANCED, CROSSED, F1
from curvote.systems.transfer.method.task import Level, Task

# What is told apart in one panel: servers, or forms of release.
LOOKS = (
    Look("#d55e00", "o", width=2.2, size=5.5, above=6),
    Look("#0072b2", "s", width=1.8, size=5),
    Look("#009e73", "D"),
    Look("#cc79a7", "^"),
    Look("#7f52a3", "v"),
    Look("#8a6a4a", "h"),
    Look("#56b4e9", "p"),
)


def look_at(place: int) -> Look:
    """Return the look of the line at this index."""
    return LOOKS[place % len(LOOKS)]


def first_grid(views: Sequence[RunView]) -> list[RunView]:
    """Return the cells of the first combination of a grid, of all its protocols."""
    return [view for view in views if grid_setting(view) == grid_setting(views[0])]


def nearest_to_one(views: Sequence[RunView]) -> list[RunView]:
    """Return a cell of each setting: that nearest to epsilon 1."""
    nearest: dict[tuple[Any, Any], RunView] = {}
    for view in sorted(views, key=epsilon_distance):
        nearest.setdefault((view.cell["protocol"], view.cell["setting"]), view)
    return [view for view in views if view in nearest.values()]


def protocol_name(view: RunView) -> str:
    """Return the name of a cell's protocol in tables."""
    return str(view.cell["protocol"])


def is_reference(view: RunView) -> bool:
    """Return whether a cell is only a reference for others."""
    return bool(view.setting("methods") == [MAJORITY.name])


def server_task(view: RunView, server: str) -> Task:
    """Return the task of one server."""
    document = view.at(server=server).metadata("privatize")["task"]
    return Task.from_json(document).for_server(server)


def record_count(view: RunView, server: str) -> int | None:
    """Return the number of records of a release, in the first repetition."""
    releases = view.at(server=server).columns("privatize", "releases", view.place())
    return int(releases["n"][0]) if len(releases["n"]) else None


def server_sizes(view: RunView) -> dict[str, int]:
    """Return the number of records of each server that released something."""
    counts = {name: record_count(view, name) for name in view.setting("names")}
    return {name: n for name, n in counts.items() if n is not None}


def server_levels(view: RunView) -> Mapping[str, Level]:
    """Return the level of each server."""
    return {
        name: server_task(view, name).servers[name] for name in view.setting("names")
    }


PANELS = {MISCLASSIFICATION: "accuracy", F1: "F1", BALANCED: "balanced accuracy"}
_REFERENCE_METHODS = (MAJORITY.name, *(method.name for method in CLEAN))


@dataclass(frozen=True, eq=False)
class ScoresSection(Section):
    """Scores of each setting's main method (``lines``) and references (``beside``).

    Both have series, level, metric, value and se; the value of an error is 1 - error.
    """

    lines: pd.DataFrame
    beside: pd.DataFrame

    name: ClassVar[str] = "measures"
    place: ClassVar[str] = "results"

    @property
    def series(self) -> list[str]:
        """Names of the settings that are drawn, in their order."""
        return [str(name) for name in self.lines["series"].drop_duplicates()]

    @property
    def alt(self) -> str:
        """Description of the figure for readers who cannot see it."""
        return (
            "Three panels against epsilon: accuracy, F1 and balanced accuracy, a line"
            f" for each of {', '.join(self.series)}; the majority and what there is"
            " without privacy beside them."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a panel for each measure, one line for each setting."""
        figure, axes = style.make_panels(
            len(PANELS), narrow=narrow, height=3.6, share_y=False
        )
        all_levels = sorted_levels(self.lines)
        for ax, (metric, title) in zip(axes, PANELS.items(), strict=True):
            metric_rows = self.lines[self.lines["metric"] == metric.name]
            for place, series in enumerate(self.series):
                _draw_scores(
                    ax, metric_rows[metric_rows["series"] == series], all_levels, place
                )
            for method in _REFERENCE_METHODS:
                metric_mask = self.beside["metric"] == metric.name
                rows = self.beside[metric_mask & (self.beside["series"] == method)]
                placed = rows[rows["level"].isin(all_levels)]
                if len(placed):
                    at = [all_levels.index(level) for level in placed["level"]]
                    ink = style.line_style(find_method(placed["series"].iloc[0]).look)
                    ax.plot(at, 100 * placed["value"], zorder=2, **ink)
                for _, row in rows[~rows["level"].isin(all_levels)].iterrows():
                    figures.draw_level_line(ax, row, 100)
            figures.draw_level_axis(ax, all_levels)
            ax.set_title(title)
            ax.grid(axis="y")
        figures.draw_left_label(axes, narrow, "percent")
        figures.draw_legend(figure, self._handles(), 2 if narrow else 4)
        return figure

    def _handles(self) -> list[Line2D]:
        """Return the entries of the legend."""
        entries = [(name, look_at(place)) for place, name in enumerate(self.series)]
        there = [
            name for name in _REFERENCE_METHODS if name in set(self.beside["series"])
        ]
        entries += [(find_method(name).label, find_method(name).look) for name in there]
        return [
            Line2D([], [], label=name, **style.line_style(look_of_line))
            for name, look_of_line in entries
        ]


def _draw_scores(ax: Axes, rows: pd.DataFrame, every: list[Value], place: int) -> None:
    """Draw one setting's scores with error bars."""
    at = np.array([every.index(level) for level in rows["level"]])
    ax.errorbar(
        at + 0.04 * (place - 1.5),
        100 * rows["value"],
        yerr=200 * rows["se"].fillna(0),
        elinewidth=0.9,
        zorder=look_at(place).above,
        **style.line_style(look_at(place)),
    )


def gather_measures(
    views: Sequence[RunView], scores: pd.DataFrame
) -> ScoresSection | None:
    """Return the scores of the main methods and the references."""
    cells = [view for view in first_grid(views) if not is_reference(view)]
    if scores.empty or not cells:
        return None
    lines = pd.concat([_cell_scores(view, scores) for view in cells], ignore_index=True)
    reference_scores = scores[scores["method"].isin(_REFERENCE_METHODS)].copy()
    reference_scores["series"] = reference_scores["method"]
    keys = ("series", "learner", "level", "metric")
    beside = reference_scores.drop_duplicates([*keys[:1], *keys[2:]])
    return ScoresSection(_to_accuracy(lines), _to_accuracy(beside))


def _cell_scores(view: RunView, scores: pd.DataFrame) -> pd.DataFrame:
    """Return a cell's rows of the scores."""
    mask = scores["protocol"] == view.cell["protocol"]
    mask &= scores["level"] == view.cell["epsilon"]
    mask &= scores["method"] == view.setting("methods")[0]
    rows = scores[mask]
    if view.cell["setting"] in learners(scores):
        rows = rows[rows["learner"] == view.cell["setting"]]
    return pd.DataFrame(rows.assign(series=protocol_name(view)))


def _to_accuracy(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores with accuracies in place of errors."""
    error = scores["metric"] == MISCLASSIFICATION.name
    value = scores["value"].astype(float)
    return scores.assign(
        value=value.mask(error, 1 - value), se=scores["se"].astype(float)
    )


# Colours stand for shares from no better than chance to nearly all.
_LOW, _HIGH = 40.0, 95.0


@dataclass(frozen=True, eq=False)
class MatrixSection(Section):
    """Train-test matrix: ``table`` has server, tested and mean shares.

    ``released_servers`` are the servers whose tested records the release is about, too.
    """

    table: pd.DataFrame
    called: str
    released_servers: Sequence[str]

    name: ClassVar[str] = "crossed"
    place: ClassVar[str] = "results"

    @property
    def alt(self) -> str:
        """Description of the matrix for readers who cannot see it."""
        pairs = self.table[["server", "tested"]].to_numpy()
        shares = 100 * self.table["accuracy"].to_numpy(float)
        shares_text = "; ".join(
            f"{server} on {tested} {share:.0f} %"
            for (server, tested), share in zip(pairs, shares, strict=True)
        )
        return f"Two matrices, accuracy and balanced accuracy. Accuracy: {shares_text}."

    def draw(self, narrow: bool) -> Figure:
        """Draw accuracy and balanced accuracy: rows release, columns are tested."""
        figure, axes = style.make_panels(2, narrow=narrow, height=3.4, share_y=False)
        panels = {"accuracy": "accuracy, percent", BALANCED.name: BALANCED.label}
        for ax, (column, title) in zip(axes, panels.items(), strict=True):
            _draw_matrix(ax, self.table, column, self.released_servers)
            ax.set_title(title)
        return figure


def _draw_matrix(
    ax: Axes, table: pd.DataFrame, column: str, released_servers: Sequence[str]
) -> None:
    """Draw one matrix of shares."""
    order = list(table["server"].drop_duplicates())
    tested = list(table["tested"].drop_duplicates())
    values = table.pivot_table(column, "server", "tested", sort=False)
    shares = 100 * values.reindex(index=order, columns=tested).to_numpy(float)

    def cell_text(row: int, place: int) -> str:
        mark = "*" * (order[row] == tested[place] and tested[place] in released_servers)
        return f"{shares[row, place]:.0f}{mark}"

    draw_matrix(ax, shares, (order, tested), cell_text, (_LOW, _HIGH))
    ax.set_xlabel("tested on")
    ax.set_ylabel("released by")


def gather_crossed(views: Sequence[RunView], _: pd.DataFrame) -> MatrixSection | None:
    """Return the matrix of the first cell that has one."""
    view = next(
        (candidate for candidate in views if candidate.holds(CROSSED.name)), None
    )
    if view is None:
        return None
    table_rows = view.read(CROSSED.name, CROSSED.name)
    by = table_rows.groupby(["server", "tested"], sort=False, as_index=False)
    table = by[["misclassification", BALANCED.name]].mean()
    table = table.assign(accuracy=1 - table["misclassification"])
    sources = [name for name in view.setting("names") if name != view.setting("target")]
    return MatrixSection(
        table, f"{protocol_name(view)} at epsilon {view.cell['epsilon']:g}", sources
    )
