"""How much each server counts, and how far it agrees with the target."""

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
from curvote.reporting.data import NOTHING, levels
from curvote.reporting.figures import legend, level_axis
from curvote.reporting.methods import method_of
from curvote.reporting.section import Section
from curvote.reporting.sections.transfer.shown import (
    called,
    compares,
    look,
    near_one,
    of_first,
)
from curvote.run.results import RunView

QUANTITIES = {"weight": "weight", "agreement": "agreement with the target"}


@dataclass(frozen=True)
class Row:
    """One server in words: mean and spread of weight and agreement."""

    server: str
    weight: str
    agreement: str


@dataclass(frozen=True, eq=False)
class Weighing(Section):
    """``table``: setting, method, level, server, quantity, mean, spread.

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
    def shown(self) -> str:
        """The setting that is drawn, with the weights it took."""
        return self._title(*self.near[0])

    @property
    def alt(self) -> str:
        """What the figure shows."""
        rows = self._rows(*self.near[0])
        told = "; ".join(f"{r.server} {r.weight}" for r in rows)
        return (
            "Two panels against epsilon, a line for each server: its weight, and its"
            f" agreement with the target {self.target}. Weights near epsilon 1: {told}."
        )

    @property
    def groups(self) -> list[tuple[str, list[Row]]]:
        """What each setting weighs at the epsilon that the page speaks of."""
        return [(self._title(*at), self._rows(*at)) for at in self.near]

    def _title(self, setting: str, level: float) -> str:
        own = self.table[self.table["setting"] == setting]
        method = own.loc[own["level"] == level, "method"].iloc[0]
        label = method_of(str(method)).label
        named = setting if label == setting else f"{setting} ({label})"
        return f"{named} at epsilon {level:g}"

    def _rows(self, setting: str, level: float) -> list[Row]:
        here = self.table["setting"] == setting
        own = self.table[here & (self.table["level"] == level)]
        return [
            Row(str(server), *(_words(part, name) for name in QUANTITIES))
            for server, part in own.groupby("server", sort=False)
        ]

    def draw(self, narrow: bool) -> Figure:
        """Draw weight and agreement against epsilon, a line for each server."""
        setting, _ = self.near[0]
        own = self.table[self.table["setting"] == setting]
        servers = list(own["server"].drop_duplicates())
        figure, axes = style.panels(2, narrow=narrow, height=3.2, share_y=False)
        for ax, (quantity, label) in zip(axes, QUANTITIES.items(), strict=True):
            rows = own[own["quantity"] == quantity]
            for place, server in enumerate(servers):
                _line(ax, rows[rows["server"] == server], levels(own), place)
            level_axis(ax, levels(own))
            ax.set_title(label)
            ax.axhline(0 if quantity == "weight" else 1, color=style.MUTED, lw=0.7)
            ax.grid(axis="y")
        legend(
            figure,
            [_handle(*each) for each in enumerate(servers)],
            2 + 4 * (not narrow),
        )
        return figure


def _words(part: pd.DataFrame, quantity: str) -> str:
    found = part[part["quantity"] == quantity]
    if found.empty or pd.isna(found["mean"].iloc[0]):
        return NOTHING
    mean, spread = found[["mean", "spread"]].iloc[0]
    return f"{mean:.2f} ± {spread:.2f}"


def _handle(place: int, server: str) -> Line2D:
    return Line2D([], [], label=server, **style.inks(look(place)))


def _line(ax: Axes, rows: pd.DataFrame, every: list[Value], place: int) -> None:
    known = rows.dropna(subset=["mean"])
    at = [every.index(level) + 0.05 * (place - 1.5) for level in known["level"]]
    ax.errorbar(
        at,
        known["mean"],
        yerr=known["spread"],
        elinewidth=0.9,
        **style.inks(look(place)),
    )


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Weighing | None:
    """Return weights and agreement of each setting's main method."""
    own = [view for view in of_first(views) if not compares(view)]
    parts = [part for view in own for part in _parts(view)]
    if not parts:
        return None
    table = pd.concat(parts, ignore_index=True)
    near = [(called(view), float(view.cell["epsilon"])) for view in near_one(own)]
    kept = [at for at in near if at[0] in set(table["setting"])]
    return Weighing(table, kept, own[0].setting("target"))


def _parts(view: RunView) -> Iterator[pd.DataFrame]:
    """Yield what one cell knows of its servers, by quantity."""
    every = view.read("aggregate", WEIGHTS.name)
    own = every[every["method"] == view.setting("methods")[0]]
    # Where the target's contrast is not told from noise, agreement is unknown.
    doubted = own["agreement_se"].isna() | (own["server"] == view.setting("target"))
    agreement = own["agreement"].astype(float).mask(doubted)
    by_quantity = {
        "weight": (own["weight"].astype(float), 0 * agreement),
        "agreement": (agreement, own["agreement_se"].astype(float)),
    }
    for quantity, (values, se) in by_quantity.items():
        if len(own):
            yield _summary(view, own, values, se).assign(quantity=quantity)


def _summary(
    view: RunView, own: pd.DataFrame, values: pd.Series, se: pd.Series
) -> pd.DataFrame:
    by = own["server"]
    means = values.groupby(by, sort=False).mean()
    spread = values.groupby(by, sort=False).std().fillna(se.groupby(by).mean())
    return pd.DataFrame(
        {
            "setting": called(view),
            "method": own["method"].iloc[0],
            "level": float(view.cell["epsilon"]),
            "server": means.index,
            "mean": means.to_numpy(),
            "spread": spread.reindex(means.index).fillna(0).to_numpy(),
        }
    )
