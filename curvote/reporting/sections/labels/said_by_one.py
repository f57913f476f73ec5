"""What one code says: how well each encoder tells classes apart, and of one client."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.errors import UserError
from curvote.labels.efficiency import Efficiency, efficiency
from curvote.labels.task import Task
from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import first_setting, near_one
from curvote.run.results import RunView


@dataclass(frozen=True)
class Row:
    """An encoder in words: of its law, and of draws."""

    series: str
    encoder: str
    kept: str
    signal: str
    measured: str
    labels: str
    nbytes: int


@dataclass(frozen=True, eq=False)
class SaidByOne(Section):
    """``rows`` at one epsilon; ``ceiling`` is what none of them can keep more often.

    ``odds`` is what one code changes at most, ``even`` what a guess among K classes is
    right by it, and ``guess`` without it.
    """

    rows: Sequence[Row]
    epsilon: float
    n_classes: int

    name: ClassVar[str] = "said_by_one"
    place: ClassVar[str] = "releases"

    @property
    def ceiling(self) -> str:
        """The largest share of labels that any single code can keep."""
        return f"{100 * min(1.0, math.exp(self.epsilon) / self.n_classes):.1f}"

    @property
    def odds(self) -> str:
        """The factor by which one code changes any odds, at most."""
        return f"{math.exp(self.epsilon):.3g}"

    @property
    def even(self) -> str:
        """The largest probability of a class after one code, all being as likely."""
        grown = math.exp(self.epsilon)
        return f"{100 * grown / (grown + self.n_classes - 1):.1f}"

    @property
    def guess(self) -> str:
        """The probability of each class before it."""
        return f"{100 / self.n_classes:.1f}"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> SaidByOne | None:
    """Return the encoders of the cells at the epsilon that the page speaks of."""
    own = first_setting(views)
    if not own:
        return None
    epsilon = near_one(own).cell["epsilon"]
    here = {v.cell["protocol"]: v for v in own if v.cell["epsilon"] == epsilon}
    rows = [row for name, view in here.items() for row in _rows(str(name), view)]
    n_classes = len(own[0].facts("ingest")["classes"])
    return SaidByOne(rows, float(epsilon), n_classes) if rows else None


def _rows(series: str, view: RunView) -> Iterator[Row]:
    task = Task.from_json(view.facts("privatize")["task"])
    try:
        found = efficiency(task.encoder, len(task.classes), task.epsilon)
    except UserError:  # too many outputs to tell how often the label is kept
        return
    yield _row(series, found)


def _row(series: str, found: Efficiency) -> Row:
    return Row(
        series,
        found.encoder,
        f"{100 * found.retention:.1f}",
        f"{found.signal:.4g}",
        f"{found.measured:.3g} ± {2 * found.se:.1g}",
        f"{math.ceil(9 / found.signal):,}",
        found.nbytes,
    )
