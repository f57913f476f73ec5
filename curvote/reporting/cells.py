"""Groups of a run's cells that stand together on a page."""

from __future__ import annotations

import math

from curvote.run.results import RunView


def grid_setting(view: RunView) -> str:
    """Return the grid setting of a cell, without its protocol."""
    setting = str(view.cell["setting"] or "")
    return setting.removeprefix(str(view.cell["protocol"])).strip()


def epsilon_distance(view: RunView) -> float:
    """Return the distance of a cell's epsilon from 1 on a log scale."""
    return abs(math.log(view.cell["epsilon"] or 1.0))
