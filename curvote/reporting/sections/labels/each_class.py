"""Table of classes: the share by codes, and how often each is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.protocols.labels.tables import RECALLS, SHARES
from curvote.reporting.data import NO_VALUE, format_percent
from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import (
    first_setting_views,
    nearest_to_epsilon_one,
)
from curvote.run.results import RunView

MOST_CLASSES = 40


@dataclass(frozen=True)
class ClassRow:
    """A class: its share by codes and by labels, and how often it is recognised."""

    name: str
    share: str
    true: str
    recall: str
    predicted: str


@dataclass(frozen=True, eq=False)
class EachClass(Section):
    """``rows`` of one cell, ``called`` so; ``hidden`` further classes are left out."""

    rows: Sequence[ClassRow]
    called: str
    hidden: int
    study: bool

    name: ClassVar[str] = "each_class"
    place: ClassVar[str] = "results"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> EachClass | None:
    """Return the classes of the cell nearest to epsilon 1."""
    first_views = first_setting_views(views)
    if not first_views:
        return None
    view = nearest_to_epsilon_one(first_views)
    study = view.holds("report")
    rows = _study_rows(view) if study else _release_rows(view)
    called = f"{view.cell['protocol']}, {view.cell.with_values(protocol=None).words}"
    return EachClass(
        rows[:MOST_CLASSES], called, max(0, len(rows) - MOST_CLASSES), study
    )


def _share_texts(view: RunView) -> dict[str, str]:
    """Return each class's share and two standard errors, of the first repetition."""
    table = view.read("train", SHARES.name)
    first = table[table["replicate"] == 0]
    parts = zip(first["class"], first["share"], first["se"], strict=True)
    return {str(name): f"{100 * a:.1f} ± {200 * se:.1f}" for name, a, se in parts}


def _release_rows(view: RunView) -> list[ClassRow]:
    texts = _share_texts(view).items()
    return [ClassRow(name, share, *[NO_VALUE] * 3) for name, share in texts]


def _study_rows(view: RunView) -> list[ClassRow]:
    table = view.read("report", RECALLS.name)
    counts = table.groupby(table["class"].astype(str), sort=False)
    summed = counts[["n", "recognised", "said"]].sum()
    shares, tested = _share_texts(view), summed["n"].sum()
    return [
        ClassRow(
            str(name),
            shares[str(name)],
            format_percent(row["n"] / tested),
            format_percent(row["recognised"] / row["n"] if row["n"] else None),
            format_percent(row["said"] / tested),
        )
        for name, row in summed.iterrows()
    ]
