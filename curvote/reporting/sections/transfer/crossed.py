"""The train-test matrix: the release of one server alone, on the records of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvote.protocols.transfer.methods import BALANCED
from curvote.protocols.transfer.tables import CROSSED
from curvote.reporting import style
from curvote.reporting.section import Section
from curvote.reporting.sections.matrix import matrix
from curvote.reporting.sections.transfer.shown import called
from curvote.run.results import RunView

# Colours stand for shares from no better than chance to nearly all.
_LOW, _HIGH = 40.0, 95.0


@dataclass(frozen=True, eq=False)
class Crossed(Section):
    """``table`` has server (whose release), tested (whose records) and mean shares.

    ``own`` are the servers whose tested records the release is about, too.
    """

    table: pd.DataFrame
    called: str
    own: Sequence[str]

    name: ClassVar[str] = "crossed"
    place: ClassVar[str] = "results"

    @property
    def alt(self) -> str:
        """What the matrix shows."""
        pairs = self.table[["server", "tested"]].to_numpy()
        shares = 100 * self.table["accuracy"].to_numpy(float)
        told = "; ".join(
            f"{server} on {tested} {share:.0f} %"
            for (server, tested), share in zip(pairs, shares, strict=True)
        )
        return f"Two matrices, accuracy and balanced accuracy. Accuracy: {told}."

    def draw(self, narrow: bool) -> Figure:
        """Draw accuracy and balanced accuracy: rows release, columns are tested."""
        figure, axes = style.panels(2, narrow=narrow, height=3.4, share_y=False)
        panels = {"accuracy": "accuracy, percent", BALANCED.name: BALANCED.label}
        for ax, (column, title) in zip(axes, panels.items(), strict=True):
            _matrix(ax, self.table, column, self.own)
            ax.set_title(title)
        return figure


def _matrix(ax: Axes, table: pd.DataFrame, column: str, own: Sequence[str]) -> None:
    order = list(table["server"].drop_duplicates())
    tested = list(table["tested"].drop_duplicates())
    values = table.pivot_table(column, "server", "tested", sort=False)
    shares = 100 * values.reindex(index=order, columns=tested).to_numpy(float)

    def told(row: int, place: int) -> str:
        mark = "*" * (order[row] == tested[place] and tested[place] in own)
        return f"{shares[row, place]:.0f}{mark}"

    matrix(ax, shares, (order, tested), told, (_LOW, _HIGH))
    ax.set_xlabel("tested on")
    ax.set_ylabel("released by")


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Crossed | None:
    """Return the matrix of the first cell that has one."""
    view = next((each for each in views if each.holds(CROSSED.name)), None)
    if view is None:
        return None
    every = view.read(CROSSED.name, CROSSED.name)
    by = every.groupby(["server", "tested"], sort=False, as_index=False)
    table = by[["misclassification", BALANCED.name]].mean()
    table = table.assign(accuracy=1 - table["misclassification"])
    own = [name for name in view.setting("names") if name != view.setting("target")]
    return Crossed(table, f"{called(view)} at epsilon {view.cell['epsilon']:g}", own)
