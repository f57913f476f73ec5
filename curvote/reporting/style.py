"""One look for every figure: fonts, inks, and a fixed colour for each method."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.typing import RcKeyType

# The page maps these and the darkest hues to its own colours, to follow dark mode.
INK = "#22262b"
MUTED = "#6a717b"
LINE = "#e2e5e9"
PAPER = "#ffffff"

# Two hues that stay apart under every common colour blindness (violet, amber).
CLASS_COLOURS = ("#6460c8", "#d98c00")

USED, REVERSED, UNUSED = "#d55e00", "#0072b2", "#a9b0b8"

RC: dict[RcKeyType, Any] = {
    # Shipped with matplotlib: text is measured alike on every machine. The page
    # shows the same text in its own, narrower font, so nothing can overlap.
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "text.parse_math": False,
    "text.color": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8.5,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 2.2,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "savefig.facecolor": PAPER,
    "path.simplify_threshold": 0.4,
    "svg.fonttype": "none",
}


LineStyle = str | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """How one method is drawn. Dashed lines are comparisons that only a study has."""

    colour: str
    marker: str
    line: LineStyle = "-"
    width: float = 1.3
    size: float = 4.5
    above: int = 3


# Okabe & Ito (2008): told apart under every common colour blindness; each method
# has a marker of its own as well.
LOOKS = {
    "mrma": Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    "ma": Look("#e69f00", "D", size=4),
    "mr": Look("#0072b2", "s"),
    "best_single": Look("#cc79a7", "^", size=5),
    "weak": Look("#838b94", "v", size=5),
    "all_data": Look("#009e73", "P", "--", size=5.2),
    "averaging": Look("#56b4e9", "X", "--", size=5),
    "voting": Look("#8a6a4a", "d", "--", size=4.5),
    "federated": Look("#7f52a3", "H", width=2.2, size=6, above=6),
    "online": Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    "frozen": Look("#838b94", "v", "--", size=5),
    "mean": Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    "joint": Look("#d55e00", "h", width=2.6, size=6.5, above=6),
    "two": Look("#d55e00", "8", width=2.6, size=6.5, above=6),
    "votes": Look("#0072b2", "s", width=2.0),
    "clean": Look("#009e73", "P", size=5.2),
    "histogram": Look("#a39a2e", "", ":", width=1.2),
    "majority": Look(MUTED, "", (0, (4, 2.5)), width=1.0, above=2),
}
OTHER = Look("#7f52a3", "p")


def look(series: str) -> Look:
    """Return the look of a series ("method" or "protocol: method")."""
    return LOOKS.get(series.rpartition(": ")[2], OTHER)


def title(name: str) -> str:
    """Return a panel's title; the name of a grid's setting goes on lines of its own."""
    return "\n".join(textwrap.wrap(name, 34))


def panels(
    n: int, *, narrow: bool, height: float, share_y: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure of ``n`` panels: up to three abreast, or one column if narrow.

    ``height`` is one panel's, in inches. A narrow figure fits a telephone.
    """
    columns = 1 if narrow else min(n, 3)
    rows = math.ceil(n / columns)
    width = 4.1 if narrow else (6.4, 9.0, 10.4)[columns - 1]
    layout = ConstrainedLayoutEngine(wspace=0.05, hspace=0.05)
    figure = Figure(figsize=(width, rows * height + 0.5), layout=layout)
    grid = figure.subplots(rows, columns, sharey=share_y, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[n:]:
        spare.remove()
    return figure, axes[:n]
