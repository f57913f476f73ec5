"""Each class: how large codes say it is, and how often it is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.protocols.labels.tables import RECALLS, SHARES
from curvote.reporting.data import NOTHING, percent
from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import first_setting, near_one
from curvote.run.results import RunView

MOST = 40


@dataclass(frozen=True)
class Row:
    """A class: its share by codes and by labels, and how often it is recognised."""

    name: str
    share: str
    true: str
    recall: str
    said: str


@dataclass(frozen=True, eq=False)
class EachClass(Section):
    """``rows`` of one cell, ``called`` so; ``hidden`` further classes are left out."""

    rows: Sequence[Row]
    called: str
    hidden: int
    study: bool

    name: ClassVar[str] = "each_class"
    place: ClassVar[str] = "results"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> EachClass | None:
    """Return the classes of the cell nearest to epsilon 1."""
    own = first_setting(views)
    if not own:
        return None
    view = near_one(own)
    study = view.holds("report")
    rows = _studied(view) if study else _released(view)
    called = f"{view.cell['protocol']}, {view.cell.with_(protocol=None).words}"
    return EachClass(rows[:MOST], called, max(0, len(rows) - MOST), study)


def _shares(view: RunView) -> dict[str, str]:
    """Return each class's share and two standard errors, of the first repetition."""
    told = view.read("train", SHARES.name)
    first = told[told["replicate"] == 0]
    parts = zip(first["class"], first["share"], first["se"], strict=True)
    return {str(name): f"{100 * a:.1f} ± {200 * se:.1f}" for name, a, se in parts}


def _released(view: RunView) -> list[Row]:
    told = _shares(view).items()
    return [Row(name, share, *[NOTHING] * 3) for name, share in told]


def _studied(view: RunView) -> list[Row]:
    told = view.read("report", RECALLS.name)
    counts = told.groupby(told["class"].astype(str), sort=False)
    summed = counts[["n", "recognised", "said"]].sum()
    shares, tested = _shares(view), summed["n"].sum()
    return [
        Row(
            str(name),
            shares[str(name)],
            percent(row["n"] / tested),
            percent(row["recognised"] / row["n"] if row["n"] else None),
            percent(row["said"] / tested),
        )
        for name, row in summed.iterrows()
    ]
