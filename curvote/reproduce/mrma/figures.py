"""The figure of each reproduction, as deterministic SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import matplotlib as mpl
from matplotlib.figure import Figure

from curvote.reporting import style
from curvote.reporting.figures import saved
from curvote.reproduce.mrma.gather import Evidence
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
    module, _, function = REPRODUCTIONS[name].figure.partition(":")
    own = import_module(f"curvote.reproduce.mrma.{module}")
    with mpl.rc_context({**style.RC, "svg.hashsalt": name}):
        figure: Figure = getattr(own, function or "figure")(rows, found)
        return {kind: saved(figure, kind) for kind in kinds}
