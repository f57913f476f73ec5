"""Page sections on releases, the servers' weights and the value of each source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.axis import Value
from curvote.pipeline.run.results import RunView
from curvote.report import style
from curvote.report.data import NO_VALUE, find_method, sorted_levels
from curvote.report.figures import draw_legend, draw_level_axis
from curvote.report.section import Section
from curvote.report.sentences import record_word
from curvote.systems.transfer.measures import WEIGHTS
from curvote.systems.transfer.method.advice import Advice, Gain, Server, advise
from curvote.systems.transfer.method.release import release_noise
from curvote.systems.transfer.method.task import OWN_RELEASE, Level, Task, form
from curvote.systems.transfer.page import (
    first_grid,
    is_reference,
    look_at,
    nearest_to_one,
    protocol_name,
    server_levels,
    server_sizes,
    server_task,
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
