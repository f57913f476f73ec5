"""Figure files of a reproduction, as deterministic SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import matplotlib as mpl
from matplotlib.figure import Figure

from curvote.reporting import style
from curvote.reporting.figures import figure_bytes
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row


def draw_files(
    name: str,
    place: str,
    rows: Sequence[Row],
    *kinds: str,
    evidence: Evidence | None = None,
) -> dict[str, bytes]:
    """Return a figure as ``svg``, ``png``: the same rows give the same bytes.

    ``place`` ("module:function", or a module whose function is called ``figure``) draws
    ``rows``, and what they were ``evidence`` from.
    """
    module, _, function = place.partition(":")
    draw_figure = getattr(import_module(module), function or "figure")
    with mpl.rc_context({**style.RC, "svg.hashsalt": name}):
        figure: Figure = draw_figure(rows, evidence)
        return {kind: figure_bytes(figure, kind) for kind in kinds}
