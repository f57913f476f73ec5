"""Cells of private labels as rows: which encoder and learner, how many classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from curvote.chain.measure import SCORES, Look
from curvote.protocols.labels.methods import LABELS
from curvote.reporting.cells import from_one
from curvote.reporting.methods import method_of
from curvote.run.results import RunView

CELL = ("series", "learner", "epsilon", "k", "method", "metric")
# Encoders beside each other, in the order of the pipeline's protocols.
LOOKS = (
    Look("#0072b2", "o", width=2.2, size=5.5, above=6),
    Look("#d55e00", "s", width=1.8, size=5),
    Look("#009e73", "D"),
    Look("#cc79a7", "^"),
    Look("#7f52a3", "v"),
    Look("#8a6a4a", "h"),
    Look("#56b4e9", "p"),
    Look("#b3a100", "X"),
)


def n_classes(view: RunView) -> int:
    """Return K, the number of classes of a cell's data."""
    return len(view.facts("ingest")["classes"])


def series_of(view: RunView, method: str) -> str:
    """Return what a line is called: the protocol's label, or what it is held against.

    Methods beside the model are the same for every encoder, but for noise.
    """
    return str(view.cell["protocol"]) if method == LABELS.name else method


def table(views: Sequence[RunView]) -> pd.DataFrame:
    """Return the scores of cells: ``CELL``, the mean ``value``, ``se`` and ``n``."""
    every = pd.concat([_of(view) for view in views], ignore_index=True)
    means = every.groupby([*CELL], dropna=False, sort=False)["value"]
    found = means.agg(value="mean", se="sem", n="size").reset_index()
    return found.assign(se=found["se"].fillna(0))


def _of(view: RunView) -> pd.DataFrame:
    told = view.read("report", SCORES.name)
    cell: dict[str, Any] = {
        "learner": view.cell["learner"],
        "epsilon": view.cell["epsilon"],
        "k": n_classes(view),
    }
    series = [series_of(view, method) for method in told["method"].astype(str)]
    return pd.DataFrame(told).assign(series=series, **cell)


def look(place: int) -> Look:
    """Return the look of the encoder at a place of the list."""
    return LOOKS[place % len(LOOKS)]


def looks(series: Sequence[str], encoders: Sequence[str]) -> dict[str, Look]:
    """Return a look for each line: encoders by place, others by what they are."""
    own = {name: look(place) for place, name in enumerate(encoders)}
    return {name: own.get(name) or method_of(name).look for name in series}


def first_setting(views: Sequence[RunView]) -> list[RunView]:
    """Return the cells of the first combination of a grid that have a model."""
    own = [view for view in views if view.holds("train")]
    return [view for view in own if n_classes(view) == n_classes(own[0])]


def near_one(views: Sequence[RunView]) -> RunView:
    """Return the cell nearest to epsilon 1, the first of several."""
    return min(views, key=from_one)
