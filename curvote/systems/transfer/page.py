"""Page sections on scores: the cells they show, measures, the train-test matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
    NO_VALUE,
    epsilon_distance,
    find_method,
    grid_setting,
    learners,
    sorted_levels,
)
from curvote.report.figures import draw_legend, draw_level_axis
from curvote.report.section import Section
from curvote.report.sentences import record_word
from curvote.systems.common.page.by_class import draw_matrix
from curvote.systems.transfer.clean.system import METHODS as CLEAN
from curvote.systems.transfer.measures import BALANCED, CROSSED, F1, WEIGHTS
from curvote.systems.transfer.method.advice import Advice, Gain, Server, advise
from curvote.systems.transfer.method.release import release_noise
from curvote.systems.transfer.method.task import OWN_RELEASE, Level, Task, form

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


_LEVEL_TEXTS = {OWN_RELEASE: "kept inside", "public": "public"}


@dataclass(frozen=True)
class ReleaseRow:
    """Texts of one release: ``noise`` is sigma in steps, ``share`` per record.

    ``loss`` is the exact epsilon at the stated delta, from the sampler's integers.
    """

    server: str
    n: str
    epsilon: str
    delta: str
    noise: str
    share: str
    numbers: str
    loss: str


@dataclass(frozen=True, eq=False)
class ReleasesSection(Section):
    """Releases of each setting, by protocol and form."""

    groups: Sequence[tuple[str, Sequence[ReleaseRow]]]
    record: str = "record"

    name: ClassVar[str] = "released"
    place: ClassVar[str] = "releases"

    @property
    def public(self) -> Sequence[str]:
        """Lines on the public facts of a release."""
        sizes = ", ".join(f"{row.server} {row.n}" for row in self.groups[0][1])
        task = (
            "The task: features with their bounds, classes, the form of a release, who"
            " is asked, and what each of them spends."
        )
        return task, f"How many {self.record}s each server holds: {sizes}."


def gather_releases(views: Sequence[RunView], _: pd.DataFrame) -> ReleasesSection:
    """Return the releases of each setting at the page's epsilon."""
    near = nearest_to_one(first_grid(views))
    groups = [(_describe_form(view), list(_release_rows(view))) for view in near]
    return ReleasesSection(groups, record_word(near[0].metadata("ingest")))


def _describe_form(view: RunView) -> str:
    """Return the heading of a cell's releases."""
    task = server_task(view, view.setting("names")[0])
    return (
        f"{protocol_name(view)}: form {task.release} at epsilon"
        f" {view.cell['epsilon']:g}"
    )


def _release_rows(view: RunView) -> Iterator[ReleaseRow]:
    """Yield a row for each server that released something."""
    for server, n in server_sizes(view).items():
        yield _release_row(server_task(view, server), n)


def _release_row(task: Task, n: int) -> ReleaseRow:
    """Return the texts of one release."""
    form_of_release, noise = form(task.release), release_noise(task, n)
    head = task.server, f"{n:,}"
    numbers = f"{form_of_release.length(task):,}"
    if noise is None:
        level_texts = _LEVEL_TEXTS[str(task.epsilon)], NO_VALUE, "0", "0"
        return ReleaseRow(*head, *level_texts, numbers, NO_VALUE)
    budget = task.cost(n)
    return ReleaseRow(
        *head,
        f"{budget.epsilon:g}",
        f"{budget.delta:.3g}",
        f"{noise.sigma:.4g}",
        f"{noise.sigma / form_of_release.unit(task):.3g}",
        numbers,
        f"{noise.worst_log_ratio():.6f}",
    )


QUANTITIES = {"weight": "weight", "agreement": "agreement with the target"}


@dataclass(frozen=True)
class WeightRow:
    """Texts of one server: mean and spread of weight and agreement."""

    server: str
    weight: str
    agreement: str


@dataclass(frozen=True, eq=False)
class WeightsSection(Section):
    """Weights and agreements: ``table`` by setting, level, server and quantity.

    The spread is one standard deviation over the replicates; with a single one it is
    the standard error that the noise is known to have. ``near`` are the cells that the
    tables show: (setting, level), the first of which is drawn.
    """

    table: pd.DataFrame
    near: Sequence[tuple[str, float]]
    target: str

    name: ClassVar[str] = "weighing"
    place: ClassVar[str] = "results"

    @property
    def figure_title(self) -> str:
        """Title of the setting that is drawn, with its rule."""
        return self._title(*self.near[0])

    @property
    def alt(self) -> str:
        """Description of the figure for readers who cannot see it."""
        rows = self._rows(*self.near[0])
        weights_text = "; ".join(f"{r.server} {r.weight}" for r in rows)
        return (
            "Two panels against epsilon, a line for each server: its weight, and its"
            f" agreement with the target {self.target}. Weights near epsilon 1:"
            f" {weights_text}."
        )

    @property
    def groups(self) -> list[tuple[str, list[WeightRow]]]:
        """Rows of each setting at the page's epsilon."""
        return [(self._title(*at), self._rows(*at)) for at in self.near]

    def _title(self, setting: str, level: float) -> str:
        """Return the title of a setting at a level."""
        rows = self.table[self.table["setting"] == setting]
        method = rows.loc[rows["level"] == level, "method"].iloc[0]
        label = find_method(str(method)).label
        named = setting if label == setting else f"{setting} ({label})"
        return f"{named} at epsilon {level:g}"

    def _rows(self, setting: str, level: float) -> list[WeightRow]:
        """Return a row for each server."""
        in_setting = self.table["setting"] == setting
        cell_rows = self.table[in_setting & (self.table["level"] == level)]
        return [
            WeightRow(
                str(server), *(_mean_and_spread(part, name) for name in QUANTITIES)
            )
            for server, part in cell_rows.groupby("server", sort=False)
        ]

    def draw(self, narrow: bool) -> Figure:
        """Draw weight and agreement against epsilon, a line for each server."""
        setting, _ = self.near[0]
        setting_rows = self.table[self.table["setting"] == setting]
        servers = list(setting_rows["server"].drop_duplicates())
        figure, axes = style.make_panels(2, narrow=narrow, height=3.2, share_y=False)
        for ax, (quantity, label) in zip(axes, QUANTITIES.items(), strict=True):
            rows = setting_rows[setting_rows["quantity"] == quantity]
            for place, server in enumerate(servers):
                _draw_line(
                    ax,
                    rows[rows["server"] == server],
                    sorted_levels(setting_rows),
                    place,
                )
            draw_level_axis(ax, sorted_levels(setting_rows))
            ax.set_title(label)
            ax.axhline(0 if quantity == "weight" else 1, color=style.MUTED, lw=0.7)
            ax.grid(axis="y")
        draw_legend(
            figure,
            [_legend_handle(*entry) for entry in enumerate(servers)],
            2 + 4 * (not narrow),
        )
        return figure


def _mean_and_spread(part: pd.DataFrame, quantity: str) -> str:
    """Return mean and spread of a quantity as text."""
    rows = part[part["quantity"] == quantity]
    if rows.empty or pd.isna(rows["mean"].iloc[0]):
        return NO_VALUE
    mean, spread = rows[["mean", "spread"]].iloc[0]
    return f"{mean:.2f} ± {spread:.2f}"


def _legend_handle(place: int, server: str) -> Line2D:
    """Return a server's entry in the legend."""
    return Line2D([], [], label=server, **style.line_style(look_at(place)))


def _draw_line(ax: Axes, rows: pd.DataFrame, every: list[Value], place: int) -> None:
    """Draw one server's line with its spread."""
    finite_rows = rows.dropna(subset=["mean"])
    at = [every.index(level) + 0.05 * (place - 1.5) for level in finite_rows["level"]]
    ax.errorbar(
        at,
        finite_rows["mean"],
        yerr=finite_rows["spread"],
        elinewidth=0.9,
        **style.line_style(look_at(place)),
    )


def gather_weights(views: Sequence[RunView], _: pd.DataFrame) -> WeightsSection | None:
    """Return weights and agreement of each setting's main method."""
    cells = [view for view in first_grid(views) if not is_reference(view)]
    parts = [part for view in cells for part in _cell_quantities(view)]
    if not parts:
        return None
    table = pd.concat(parts, ignore_index=True)
    near = [
        (protocol_name(view), float(view.cell["epsilon"]))
        for view in nearest_to_one(cells)
    ]
    near_with_weights = [at for at in near if at[0] in set(table["setting"])]
    return WeightsSection(table, near_with_weights, cells[0].setting("target"))


def _cell_quantities(view: RunView) -> Iterator[pd.DataFrame]:
    """Yield weight and agreement of each server of one cell."""
    all_rows = view.read("aggregate", WEIGHTS.name)
    main_rows = all_rows[all_rows["method"] == view.setting("methods")[0]]
    # Where the target's contrast is not told from noise, agreement is unknown.
    doubted = main_rows["agreement_se"].isna() | (
        main_rows["server"] == view.setting("target")
    )
    agreement = main_rows["agreement"].astype(float).mask(doubted)
    by_quantity = {
        "weight": (main_rows["weight"].astype(float), 0 * agreement),
        "agreement": (agreement, main_rows["agreement_se"].astype(float)),
    }
    for quantity, (values, se) in by_quantity.items():
        if len(main_rows):
            by = main_rows["server"]
            means = values.groupby(by, sort=False).mean()
            spread = values.groupby(by, sort=False).std().fillna(se.groupby(by).mean())
            yield (
                pd.DataFrame(
                    {
                        "setting": protocol_name(view),
                        "method": main_rows["method"].iloc[0],
                        "level": float(view.cell["epsilon"]),
                        "server": means.index,
                        "mean": means.to_numpy(),
                        "spread": spread.reindex(means.index).fillna(0).to_numpy(),
                    }
                )
            ).assign(quantity=quantity)


@dataclass(frozen=True)
class WorthRow:
    """Texts of a source: r, excess risk, equivalent records of the target."""

    who: str
    records: str
    epsilon: str
    r: str
    risk: str
    like: str
    begins: str


@dataclass(frozen=True, eq=False)
class AdviceSection(Section):
    """Section with the ``advice`` at the public sizes and budgets of a run."""

    advice: Advice

    name: ClassVar[str] = "worth"
    place: ClassVar[str] = "end"

    @property
    def rows(self) -> list[WorthRow]:
        """Rows of the target alone, with each source, with all."""
        return list(_worth_rows(self.advice))

    @property
    def promised(self) -> bool:
        """Whether r is below 1, so that rates say something."""
        return self.advice.together.r < 1

    @property
    def command(self) -> str:
        """Command that prints the same for other sizes and budgets."""
        servers = (self.advice.target, *(offer.server for offer in self.advice.offers))
        named = (
            f"--server {server.name}:{server.n}:{_format_epsilon(server)}"
            for server in servers
        )
        return f"curvote advise {' '.join(named)} --features {self.advice.d}"


def _worth_rows(advice: Advice) -> Iterator[WorthRow]:
    """Yield the rows of an advice."""
    target = advice.target
    yield _worth_row(f"{target.name} alone", target, advice.alone)
    for offer in advice.offers:
        least = offer.least_epsilon
        yield _worth_row(
            f"with {offer.server.name}",
            offer.server,
            offer.gain,
            ("never" if least is None else f"from {least:.2g} on"),
        )
    yield _worth_row("with all of them", None, advice.together)


def _worth_row(
    who: str, server: Server | None, gain: Gain, begins: str = ""
) -> WorthRow:
    """Return the texts of one gain."""
    size_texts = (f"{server.n:,}", _format_epsilon(server)) if server else ("", "")
    gain_texts = f"{gain.r:.3f}", f"{100 * gain.risk:.0f} %", f"{gain.records:,.0f}"
    return WorthRow(who, *size_texts, *gain_texts, begins)


def _format_epsilon(server: Server) -> str:
    """Return a server's epsilon as text."""
    return "public" if math.isinf(server.epsilon) else f"{server.epsilon:g}"


def gather_worth(views: Sequence[RunView], _: pd.DataFrame) -> AdviceSection | None:
    """Return the advice at the page's epsilon."""
    view = nearest_to_one(views)[0]
    levels, known_sizes = server_levels(view), server_sizes(view)
    target = view.setting("target")
    ordered_names = sorted(known_sizes, key=lambda name: name != target)
    servers = [
        _to_server(name, known_sizes[name], levels[name]) for name in ordered_names
    ]
    if len(servers) < 2 or min(known_sizes.values()) < 2 or ordered_names[0] != target:
        return None
    return AdviceSection(advise(servers, view.metadata("project")["d"]))


def _to_server(name: str, n: int, level: Level) -> Server:
    """Return a server of the advice from its size and level."""
    epsilon = math.inf if isinstance(level.epsilon, str) else level.epsilon
    return Server(name, n, epsilon, delta=level.delta)
