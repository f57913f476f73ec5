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
from curvote.reporting.sections.matrix import draw_matrix
from curvote.reporting.sections.transfer.shown import protocol_name
from curvote.run.results import RunView

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


def gather(views: Sequence[RunView], _: pd.DataFrame) -> MatrixSection | None:
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
