"""Reproduction of MRMA's entries: comparison, files, terminal text."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.reproduce import figures
from curvote.reproduce.gather import Evidence
from curvote.reproduce.mrma.names import REPRODUCTIONS
from curvote.reproduce.rows import Row


def draw_entry(
    name: str,
    rows: Sequence[Row],
    *kinds: str,
    evidence: Evidence | None = None,
) -> dict[str, bytes]:
    """Return the figure of an entry as ``svg``, ``png``.

    ``rows`` as `comparison` gives them; ``evidence`` is what they come from. Boxes need
    it, and curves of theory, which follow the runs' configuration.
    """
    place = f"curvote.reproduce.mrma.{REPRODUCTIONS[name].figure}"
    return figures.draw_files(name, place, rows, *kinds, evidence=evidence)
