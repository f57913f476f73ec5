"""Which cells of transfer between servers a page shows, and what was asked there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curvote.chain.measure import Look
from curvote.protocols.majority.methods import MAJORITY
from curvote.reporting.cells import from_one, grid
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


def look(place: int) -> Look:
    """Return the look of the one at a place of a list."""
    return LOOKS[place % len(LOOKS)]


def of_first(views: Sequence[RunView]) -> list[RunView]:
    """Return the cells of the first combination of a grid, of all its protocols."""
    return [view for view in views if grid(view) == grid(views[0])]


def near_one(views: Sequence[RunView]) -> list[RunView]:
    """Return a cell of each setting: that at epsilon 1, or the nearest to it."""
    found: dict[tuple[Any, Any], RunView] = {}
    for view in sorted(views, key=from_one):
        found.setdefault((view.cell["protocol"], view.cell["setting"]), view)
    return [view for view in views if view in found.values()]


def called(view: RunView) -> str:
    """Return what a table calls a cell's protocol."""
    return str(view.cell["protocol"])


def compares(view: RunView) -> bool:
    """Say whether a cell is only there to hold others against it."""
    return bool(view.setting("methods") == [MAJORITY.name])


def asked(view: RunView, server: str) -> Task:
    """Return what one server was asked."""
    told = view.at(server=server).facts("privatize")["task"]
    return Task.from_json(told).only(server)


def records(view: RunView, server: str) -> int | None:
    """Return how many records a release is about, of the first repetition."""
    sent = view.at(server=server).columns("privatize", "releases", view.place())
    return int(sent["n"][0]) if len(sent["n"]) else None


def sizes(view: RunView) -> dict[str, int]:
    """Return the number of records of each server that released something."""
    found = {name: records(view, name) for name in view.setting("names")}
    return {name: n for name, n in found.items() if n is not None}


def spent(view: RunView) -> Mapping[str, Level]:
    """Return what each server spends."""
    return {name: asked(view, name).servers[name] for name in view.setting("names")}
