"""Tables of a page of private labels: features, honest scores, classes, codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from curvote.chain.measure import SCORES, Look
from curvote.protocols.labels.methods import LABELS
from curvote.reporting.cells import epsilon_distance
from curvote.reporting.methods import find_method
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


def class_count(view: RunView) -> int:
    """Return K, the number of classes of a cell's data."""
    return len(view.metadata("ingest")["classes"])


def series_name(view: RunView, method: str) -> str:
    """Return the name of a line: the protocol's label, or a reference method's.

    Methods beside the model are the same for every encoder, but for noise.
    """
    return str(view.cell["protocol"]) if method == LABELS.name else method


def mean_scores(views: Sequence[RunView]) -> pd.DataFrame:
    """Return the mean scores of cells: ``CELL``, ``value``, ``se`` and ``n``."""
    scores = pd.concat([_cell_scores(view) for view in views], ignore_index=True)
    means = scores.groupby([*CELL], dropna=False, sort=False)["value"]
    summary = means.agg(value="mean", se="sem", n="size").reset_index()
    return summary.assign(se=summary["se"].fillna(0))


def _cell_scores(view: RunView) -> pd.DataFrame:
    scores = view.read("report", SCORES.name)
    cell: dict[str, Any] = {
        "learner": view.cell["learner"],
        "epsilon": view.cell["epsilon"],
        "k": class_count(view),
    }
    series = [series_name(view, method) for method in scores["method"].astype(str)]
    return pd.DataFrame(scores).assign(series=series, **cell)


def encoder_look(place: int) -> Look:
    """Return the look of the encoder at a place of the list."""
    return LOOKS[place % len(LOOKS)]


def series_looks(series: Sequence[str], encoders: Sequence[str]) -> dict[str, Look]:
    """Return a look for each line: encoders by place, others by what they are."""
    encoder_looks = {name: encoder_look(place) for place, name in enumerate(encoders)}
    return {name: encoder_looks.get(name) or find_method(name).look for name in series}


def first_setting_views(views: Sequence[RunView]) -> list[RunView]:
    """Return the cells of the first combination of a grid that have a model."""
    trained_views = [view for view in views if view.holds("train")]
    return [
        view
        for view in trained_views
        if class_count(view) == class_count(trained_views[0])
    ]


def nearest_to_epsilon_one(views: Sequence[RunView]) -> RunView:
    """Return the cell nearest to epsilon 1, the first of several."""
    return min(views, key=epsilon_distance)
