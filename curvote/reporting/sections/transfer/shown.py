"""Page sections on scores: the cells they show, measures, the train-test matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curvote.chain.measure import Look
from curvote.protocols.majority.methods import MAJORITY
from curvote.reporting.cells import epsilon_distance, grid_setting
from curvote.run.results import RunView
from curvote.transfer.task import Level, Task

# What is told apart in one panel: servers, or forms of release.
LOOKS = (
    Look("#d55e00", "o", width=2.2, size=5.5, above=6),
    Look("#0072b2", "s", width=1.8, size=5),
    Look("#009e73", "D"),
    Look("#cc79a7", "^"),
    Look("#7f52a3", "v"),
    Look("#8a6a4a", "h"),
    Look("#56b4e9", "p"),
)


def look_at(place: int) -> Look:
    """Return the look of the line at this index."""
    return LOOKS[place % len(LOOKS)]


def first_grid(views: Sequence[RunView]) -> list[RunView]:
    """Return the cells of the first combination of a grid, of all its protocols."""
    return [view for view in views if grid_setting(view) == grid_setting(views[0])]


def nearest_to_one(views: Sequence[RunView]) -> list[RunView]:
    """Return a cell of each setting: that nearest to epsilon 1."""
    nearest: dict[tuple[Any, Any], RunView] = {}
    for view in sorted(views, key=epsilon_distance):
        nearest.setdefault((view.cell["protocol"], view.cell["setting"]), view)
    return [view for view in views if view in nearest.values()]


def protocol_name(view: RunView) -> str:
    """Return the name of a cell's protocol in tables."""
    return str(view.cell["protocol"])


def is_reference(view: RunView) -> bool:
    """Return whether a cell is only a reference for others."""
    return bool(view.setting("methods") == [MAJORITY.name])


def server_task(view: RunView, server: str) -> Task:
    """Return the task of one server."""
    document = view.at(server=server).metadata("privatize")["task"]
    return Task.from_json(document).for_server(server)


def record_count(view: RunView, server: str) -> int | None:
    """Return the number of records of a release, in the first repetition."""
    releases = view.at(server=server).columns("privatize", "releases", view.place())
    return int(releases["n"][0]) if len(releases["n"]) else None


def server_sizes(view: RunView) -> dict[str, int]:
    """Return the number of records of each server that released something."""
    counts = {name: record_count(view, name) for name in view.setting("names")}
    return {name: n for name, n in counts.items() if n is not None}


def server_levels(view: RunView) -> Mapping[str, Level]:
    """Return the level of each server."""
    return {
        name: server_task(view, name).servers[name] for name in view.setting("names")
    }
