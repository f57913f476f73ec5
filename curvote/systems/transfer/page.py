"""Page sections: scores, the train-test matrix, releases, weights, a source's value."""

import math
from collections import namedtuple
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.measure import Look
from curvote.messages.measures import MAJORITY, MISCLASSIFICATION
from curvote.pipeline.run.results import RunView
from curvote.report import data, figures, style
from curvote.report.data import Section
from curvote.report.sentences import record_word
from curvote.systems.common.page.utilities import draw_matrix
from curvote.systems.transfer import measures
from curvote.systems.transfer.method.advice import Advice, Gain, Server, advise
from curvote.systems.transfer.method.release import release_noise
from curvote.systems.transfer.method.task import OWN_RELEASE, Task, form

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
    return [
        view for view in views if data.grid_setting(view) == data.grid_setting(views[0])
    ]


def nearest_to_one(views: Sequence[RunView]) -> list[RunView]:
    """Return a cell of each setting: that nearest to epsilon 1."""
    nearest: dict[tuple[Any, Any], RunView] = {}
    for view in sorted(views, key=data.epsilon_distance):
        nearest.setdefault((view.cell["protocol"], view.cell["setting"]), view)
    return [view for view in views if view in nearest.values()]


def is_reference(view: RunView) -> bool:
    """Return whether a cell is only a reference for others."""
    return bool(view.setting("methods") == [MAJORITY.name])


def server_task(view: RunView, server: str) -> Task:
    """Return the task of one server."""
    document = view.at(server=server).metadata("privatize")["task"]
    return Task.from_json(document).for_server(server)


def server_sizes(view: RunView) -> dict[str, int]:
    """Return each releasing server's number of records in the first repetition."""
    sizes = {}
    for server in view.setting("names"):
        releases = view.at(server=server).columns("privatize", "releases", view.place())
        if len(releases["n"]):
            sizes[server] = int(releases["n"][0])
    return sizes


PANELS = {
    MISCLASSIFICATION: "accuracy",
    measures.F1: "F1",
    measures.BALANCED: "balanced accuracy",
}
_REFERENCE_METHODS = (
    MAJORITY.name,
    *(method.name for method in measures.CLEAN_METHODS),
)


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
    def alt_text(self) -> str:
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
        levels = data.sorted_levels(self.lines)
        looks = [(name, look_at(place)) for place, name in enumerate(self.series)]
        for ax, (metric, title) in zip(axes, PANELS.items(), strict=True):
            metric_rows = self.lines[self.lines["metric"] == metric.name]
            for place, (series, look) in enumerate(looks):
                rows = metric_rows[metric_rows["series"] == series]
                at = np.array([levels.index(level) for level in rows["level"]])
                ax.errorbar(
                    at + 0.04 * (place - 1.5),
                    100 * rows["value"],
                    yerr=200 * rows["se"].fillna(0),
                    elinewidth=0.9,
                    zorder=look.above,
                    **style.line_style(look),
                )
            metric_rows = self.beside[self.beside["metric"] == metric.name]
            for reference in _REFERENCE_METHODS:
                rows = metric_rows[metric_rows["series"] == reference]
                placed = rows[rows["level"].isin(levels)]
                if len(placed):
                    places = [levels.index(level) for level in placed["level"]]
                    ink = style.line_style(data.find_method(reference).look)
                    ax.plot(places, 100 * placed["value"], zorder=2, **ink)
                for _, row in rows[~rows["level"].isin(levels)].iterrows():
                    figures.draw_level_line(ax, row, 100)
            figures.draw_level_axis(ax, levels)
            ax.set_title(title)
            ax.grid(axis="y")
        figures.draw_left_label(axes, narrow, "percent")
        labels = set(self.beside["series"])
        references = (data.find_method(n) for n in _REFERENCE_METHODS if n in labels)
        looks += [(method.label, method.look) for method in references]
        figures.draw_legend(
            figure, [_legend_handle(*entry) for entry in looks], 2 if narrow else 4
        )
        return figure


def _legend_handle(label: str, look: Look) -> Line2D:
    return Line2D([], [], label=label, **style.line_style(look))


def gather_measures(
    views: Sequence[RunView], scores: pd.DataFrame
) -> ScoresSection | None:
    """Return the scores of the main methods and the references."""
    cells = [view for view in first_grid(views) if not is_reference(view)]
    if scores.empty or not cells:
        return None
    lines = []
    for view in cells:
        mask = scores["protocol"] == view.cell["protocol"]
        mask &= scores["level"] == view.cell["epsilon"]
        mask &= scores["method"] == view.setting("methods")[0]
        rows = scores[mask]
        if view.cell["setting"] in data.learners(scores):
            rows = rows[rows["learner"] == view.cell["setting"]]
        lines.append(rows.assign(series=view.cell["protocol"]))
    references = scores[scores["method"].isin(_REFERENCE_METHODS)].copy()
    references["series"] = references["method"]
    beside = references.drop_duplicates(["series", "level", "metric"])
    main_scores = pd.concat(lines, ignore_index=True)
    return ScoresSection(_to_accuracy(main_scores), _to_accuracy(beside))


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
    def alt_text(self) -> str:
        """Description of the matrix for readers who cannot see it."""
        columns = (self.table[name] for name in ("server", "tested", "accuracy"))
        shares_text = "; ".join(
            f"{server} on {tested} {100 * share:.0f} %"
            for server, tested, share in zip(*columns, strict=True)
        )
        return f"Two matrices, accuracy and balanced accuracy. Accuracy: {shares_text}."

    def draw(self, narrow: bool) -> Figure:
        """Draw accuracy and balanced accuracy: rows release, columns are tested."""
        figure, axes = style.make_panels(2, narrow=narrow, height=3.4, share_y=False)
        panels = {
            "accuracy": "accuracy, percent",
            measures.BALANCED.name: measures.BALANCED.label,
        }
        order = list(self.table["server"].drop_duplicates())
        tested = list(self.table["tested"].drop_duplicates())
        for ax, (column, title) in zip(axes, panels.items(), strict=True):
            values = self.table.pivot_table(column, "server", "tested", sort=False)
            shares = 100 * values.reindex(index=order, columns=tested).to_numpy(float)
            texts = [
                [
                    f"{share:.0f}{'*' * (name == at and name in self.released_servers)}"
                    for at, share in zip(tested, row, strict=True)
                ]
                for name, row in zip(order, shares, strict=True)
            ]
            draw_matrix(ax, shares, (order, tested), texts, (_LOW, _HIGH))
            ax.set_title(title)
            ax.set_xlabel("tested on")
            ax.set_ylabel("released by")
        return figure


def gather_crossed(views: Sequence[RunView], _: pd.DataFrame) -> MatrixSection | None:
    """Return the matrix of the first cell that has one."""
    view = next((view for view in views if view.holds(measures.CROSSED.name)), None)
    if view is None:
        return None
    rows = view.read(measures.CROSSED.name, measures.CROSSED.name)
    by = rows.groupby(["server", "tested"], sort=False, as_index=False)
    table = by[["misclassification", measures.BALANCED.name]].mean()
    table = table.assign(accuracy=1 - table["misclassification"])
    sources = [name for name in view.setting("names") if name != view.setting("target")]
    called = f"{view.cell['protocol']} at epsilon {view.cell['epsilon']:g}"
    return MatrixSection(table, called, sources)


_LEVEL_TEXTS = {OWN_RELEASE: "kept inside", "public": "public"}


# Texts of one release: ``noise`` is sigma in steps, ``share`` per record. ``loss`` is
# the exact epsilon at the stated delta, from the sampler's integers.
ReleaseRow = namedtuple("ReleaseRow", "server n epsilon delta noise share numbers loss")


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
    groups = []
    for view in near:
        task = server_task(view, view.setting("names")[0])
        epsilon = f"epsilon {view.cell['epsilon']:g}"
        sizes = server_sizes(view).items()
        rows = [_release_row(server_task(view, server), n) for server, n in sizes]
        heading = f"{view.cell['protocol']}: form {task.release} at {epsilon}"
        groups.append((heading, rows))
    return ReleasesSection(groups, record_word(near[0].metadata("ingest")))


def _release_row(task: Task, n: int) -> ReleaseRow:
    """Return the texts of one release."""
    form_of_release, noise = form(task.release), release_noise(task, n)
    head = task.server, f"{n:,}"
    numbers = f"{form_of_release.length(task):,}"
    if noise is None:
        level_texts = _LEVEL_TEXTS[str(task.epsilon)], data.NO_VALUE, "0", "0"
        return ReleaseRow(*head, *level_texts, numbers, data.NO_VALUE)
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


# Texts of one server: mean and spread of weight and agreement.
WeightRow = namedtuple("WeightRow", "server weight agreement")


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
    def alt_text(self) -> str:
        """Description of the figure for readers who cannot see it."""
        rows = self.groups[0][1]
        weights_text = "; ".join(f"{r.server} {r.weight}" for r in rows)
        return (
            "Two panels against epsilon, a line for each server: its weight, and its"
            f" agreement with the target {self.target}. Weights near epsilon 1:"
            f" {weights_text}."
        )

    @property
    def groups(self) -> list[tuple[str, list[WeightRow]]]:
        """Title and rows, a server each, of each setting at the page's epsilon."""
        groups = []
        for setting, level in self.near:
            rows = self.table[self.table["setting"] == setting]
            rows = rows[rows["level"] == level]
            label = data.find_method(str(rows["method"].iloc[0])).label
            named = setting if label == setting else f"{setting} ({label})"
            texts = [
                WeightRow(str(name), *(_mean_and_spread(part, q) for q in QUANTITIES))
                for name, part in rows.groupby("server", sort=False)
            ]
            groups.append((f"{named} at epsilon {level:g}", texts))
        return groups

    def draw(self, narrow: bool) -> Figure:
        """Draw weight and agreement against epsilon, a line for each server."""
        setting_rows = self.table[self.table["setting"] == self.near[0][0]]
        servers = setting_rows["server"].drop_duplicates()
        looks = [(name, look_at(place)) for place, name in enumerate(servers)]
        levels = data.sorted_levels(setting_rows)
        figure, axes = style.make_panels(2, narrow=narrow, height=3.2, share_y=False)
        for ax, (quantity, label) in zip(axes, QUANTITIES.items(), strict=True):
            rows = setting_rows[setting_rows["quantity"] == quantity]
            for place, (server, look) in enumerate(looks):
                line = rows[rows["server"] == server].dropna(subset=["mean"])
                at = [levels.index(n) + 0.05 * (place - 1.5) for n in line["level"]]
                ink = style.line_style(look)
                ax.errorbar(at, line["mean"], line["spread"], elinewidth=0.9, **ink)
            figures.draw_level_axis(ax, levels)
            ax.set_title(label)
            ax.axhline(0 if quantity == "weight" else 1, color=style.MUTED, lw=0.7)
            ax.grid(axis="y")
        handles = [_legend_handle(*entry) for entry in looks]
        figures.draw_legend(figure, handles, 2 + 4 * (not narrow))
        return figure


def _mean_and_spread(part: pd.DataFrame, quantity: str) -> str:
    """Return mean and spread of a quantity as text."""
    rows = part[part["quantity"] == quantity]
    if rows.empty or pd.isna(rows["mean"].iloc[0]):
        return data.NO_VALUE
    mean, spread = rows[["mean", "spread"]].iloc[0]
    return f"{mean:.2f} ± {spread:.2f}"


def gather_weights(views: Sequence[RunView], _: pd.DataFrame) -> WeightsSection | None:
    """Return weights and agreement of each setting's main method."""
    cells = [view for view in first_grid(views) if not is_reference(view)]
    parts = [part for view in cells for part in _cell_quantities(view)]
    if not parts:
        return None
    table = pd.concat(parts, ignore_index=True)
    near = [
        (view.cell["protocol"], float(view.cell["epsilon"]))
        for view in nearest_to_one(cells)
        if view.cell["protocol"] in set(table["setting"])
    ]
    return WeightsSection(table, near, cells[0].setting("target"))


def _cell_quantities(view: RunView) -> Iterator[pd.DataFrame]:
    """Yield weight and agreement of each server of one cell."""
    rows, method = (
        view.read("aggregate", measures.WEIGHTS.name),
        view.setting("methods")[0],
    )
    rows = rows[rows["method"] == method]
    if not len(rows):
        return
    by = rows["server"]
    # Where the target's contrast is not told from noise, agreement is unknown.
    doubted = rows["agreement_se"].isna() | (by == view.setting("target"))
    agreement = rows["agreement"].astype(float).mask(doubted)
    by_quantity = {
        "weight": (rows["weight"].astype(float), 0 * agreement),
        "agreement": (agreement, rows["agreement_se"].astype(float)),
    }
    for quantity, (values, se) in by_quantity.items():
        means = values.groupby(by, sort=False).mean()
        spread = values.groupby(by, sort=False).std().fillna(se.groupby(by).mean())
        yield pd.DataFrame(
            {
                "setting": view.cell["protocol"],
                "method": method,
                "level": float(view.cell["epsilon"]),
                "server": means.index,
                "mean": means.to_numpy(),
                "spread": spread.reindex(means.index).fillna(0).to_numpy(),
                "quantity": quantity,
            }
        )


# Texts of a source: r, excess risk, equivalent records of the target.
WorthRow = namedtuple("WorthRow", "who records epsilon r risk like begins")


@dataclass(frozen=True, eq=False)
class AdviceSection(Section):
    """Section with the ``advice`` at the public sizes and budgets of a run."""

    advice: Advice

    name: ClassVar[str] = "worth"
    place: ClassVar[str] = "end"

    @property
    def rows(self) -> list[WorthRow]:
        """Rows of the target alone, with each source, with all."""
        target = self.advice.target
        rows = [_worth_row(f"{target.name} alone", target, self.advice.alone)]
        for offer in self.advice.offers:
            least, who = offer.least_epsilon, f"with {offer.server.name}"
            begins = "never" if least is None else f"from {least:.2g} on"
            rows.append(_worth_row(who, offer.server, offer.gain, begins))
        return [*rows, _worth_row("with all of them", None, self.advice.together)]

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
    sizes, target = server_sizes(view), view.setting("target")
    names = sorted(sizes, key=lambda name: name != target)
    servers = []
    for name in names:
        level = server_task(view, name).servers[name]
        epsilon = math.inf if isinstance(level.epsilon, str) else level.epsilon
        servers.append(Server(name, sizes[name], epsilon, delta=level.delta))
    if len(servers) < 2 or min(sizes.values()) < 2 or names[0] != target:
        return None
    return AdviceSection(advise(servers, view.metadata("project")["d"]))
