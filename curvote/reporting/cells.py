"""Which cells of a run stand together on a page."""

from __future__ import annotations

import math

from curvote.run.results import RunView


def grid(view: RunView) -> str:
    """Return the combination of a grid that a cell belongs to, without its protocol."""
    setting = str(view.cell["setting"] or "")
    return setting.removeprefix(str(view.cell["protocol"])).strip()


def from_one(view: RunView) -> float:
    """Return how far a cell's epsilon is from 1, on a log scale; 0 without privacy."""
    return abs(math.log(view.cell["epsilon"] or 1.0))
