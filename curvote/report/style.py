"""Style of all figures: fonts, colours, lines and panels."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from curvote.chain.measure import Look

if TYPE_CHECKING:  # a page that is drawn already needs the colours only
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# The page maps these and the darkest hues to its own colours, to follow dark mode.
INK = "#22262b"
# The public bounds in the figure of a data card.
EDGE: dict[str, Any] = {"color": INK, "lw": 0.8, "ls": (0, (2, 2))}
MUTED = "#6a717b"
LINE = "#e2e5e9"
PAPER = "#ffffff"

# Two hues that stay apart under every common colour blindness (violet, amber); those of
# further classes stay apart from them and from each other in lightness, too.
CLASS_COLOURS = ("#6460c8", "#d98c00", "#0b7a5c", "#b3346c", "#56b4e9", "#5c4a32")

# Hues of methods that the page follows into dark mode.
BLUE, GREEN, BROWN = "#0072b2", "#009e73", "#8a6a4a"
USED, REVERSED, UNUSED = "#d55e00", BLUE, "#a9b0b8"

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


def class_colours(n: int) -> list[str]:
    """Return the colour of each of ``n`` classes; beyond six they come again."""
    return [CLASS_COLOURS[k % len(CLASS_COLOURS)] for k in range(n)]


def line_style(look: Look) -> dict[str, Any]:
    """Return a look as matplotlib's line arguments."""
    return {
        "color": look.colour,
        "lw": look.width,
        "ls": look.line,
        "marker": look.marker,
        "ms": look.size,
        "mec": PAPER,
        "mew": 0.6,
    }


def wrap_title(name: str) -> str:
    """Return a panel's title, wrapped into several lines."""
    return "\n".join(textwrap.wrap(name, 34))


def make_panels(
    n: int, *, narrow: bool, height: float, share_y: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure of ``n`` panels: up to three a row, or one column.

    ``height`` is one panel's, in inches. A narrow figure fits a telephone.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

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
