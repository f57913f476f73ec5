"""Page section of classes: recall, and a matrix of confusions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

# A share as text, by its row and column.
SquareText = Callable[[int, int], str]


def draw_matrix(
    ax: Axes,
    shares: NDArray[np.float64],
    names: tuple[Sequence[str], Sequence[str]],
    square_text: SquareText,
    limits: tuple[float, float] = (0.0, 100.0),
) -> None:
    """Draw ``shares`` (p, q), in percent, with the ``names`` of rows and of columns.

    Colours go from one of the ``limits`` to the other; ``square_text`` says what is
    written on a square.
    """
    (rows, columns), (low, high) = names, limits
    ax.imshow(shares, cmap="Blues", vmin=low, vmax=high, aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        dark = share > (low + 2 * high) / 3
        ink = "#ffffff" if dark else "#000000"
        text = square_text(row, column)
        ax.text(column, row, text, ha="center", va="center", color=ink)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    for spine in ax.spines.values():
        spine.set_visible(False)
