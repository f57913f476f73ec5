"""Weights of the servers and their agreement with the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.axis import Value
from curvote.protocols.transfer.tables import WEIGHTS
from curvote.reporting import style
from curvote.reporting.data import NO_VALUE, sorted_levels
from curvote.reporting.figures import draw_legend, draw_level_axis
from curvote.reporting.methods import find_method
from curvote.reporting.section import Section
from curvote.reporting.sections.transfer.shown import (
    first_grid,
    is_reference,
    look_at,
    nearest_to_one,
    protocol_name,
)
from curvote.run.results import RunView

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


def gather(views: Sequence[RunView], _: pd.DataFrame) -> WeightsSection | None:
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
            yield _summarize(view, main_rows, values, se).assign(quantity=quantity)


def _summarize(
    view: RunView, rows: pd.DataFrame, values: pd.Series, se: pd.Series
) -> pd.DataFrame:
    """Return mean and spread over the replicates, by server."""
    by = rows["server"]
    means = values.groupby(by, sort=False).mean()
    spread = values.groupby(by, sort=False).std().fillna(se.groupby(by).mean())
    return pd.DataFrame(
        {
            "setting": protocol_name(view),
            "method": rows["method"].iloc[0],
            "level": float(view.cell["epsilon"]),
            "server": means.index,
            "mean": means.to_numpy(),
            "spread": spread.reindex(means.index).fillna(0).to_numpy(),
        }
    )
