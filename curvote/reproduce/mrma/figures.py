"""The figure of each reproduction of MRMA."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.reproduce import figures
from curvote.reproduce.gather import Evidence
from curvote.reproduce.mrma.names import REPRODUCTIONS
from curvote.reproduce.rows import Row


def draw(
    name: str,
    rows: Sequence[Row],
    *kinds: str,
    found: Evidence | None = None,
) -> dict[str, bytes]:
    """Return the figure of a reproduction as ``svg``, ``png``: same rows, same bytes.

    ``rows`` as `comparison` gives them; ``found`` is what they come from. Boxes need
    it, and curves of theory, which follow the runs' configuration.
    """
    place = f"curvote.reproduce.mrma.{REPRODUCTIONS[name].figure}"
    return figures.draw(name, place, rows, *kinds, found=found)
