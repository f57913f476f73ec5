"""Report of one code: how well each encoder tells classes apart, and of one client."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.errors import UserError
from curvote.labels.efficiency import Efficiency, encoder_efficiency
from curvote.labels.task import Task
from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import (
    first_setting_views,
    nearest_to_epsilon_one,
)
from curvote.run.results import RunView


@dataclass(frozen=True)
class EncoderRow:
    """An encoder as texts: numbers of its law, and of draws."""

    series: str
    encoder: str
    retention: str
    signal: str
    measured: str
    labels: str
    nbytes: int


@dataclass(frozen=True, eq=False)
class CodeReport(Section):
    """``rows`` at one epsilon; ``ceiling`` is what none of them can keep more often.

    ``odds`` is what one code changes at most, ``even`` what a guess among K classes is
    right by it, and ``guess`` without it.
    """

    rows: Sequence[EncoderRow]
    epsilon: float
    n_classes: int

    name: ClassVar[str] = "said_by_one"
    place: ClassVar[str] = "releases"

    @property
    def ceiling(self) -> str:
        """Return the largest share of labels that any single code can keep."""
        return f"{100 * min(1.0, math.exp(self.epsilon) / self.n_classes):.1f}"

    @property
    def odds(self) -> str:
        """Return the factor by which one code changes any odds, at most."""
        return f"{math.exp(self.epsilon):.3g}"

    @property
    def even(self) -> str:
        """Return the largest probability of a class after one code, from even odds."""
        grown = math.exp(self.epsilon)
        return f"{100 * grown / (grown + self.n_classes - 1):.1f}"

    @property
    def guess(self) -> str:
        """Return the probability of each class before it."""
        return f"{100 / self.n_classes:.1f}"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> CodeReport | None:
    """Return the encoders of the cells at the epsilon that the page speaks of."""
    first_views = first_setting_views(views)
    if not first_views:
        return None
    epsilon = nearest_to_epsilon_one(first_views).cell["epsilon"]
    views_by_protocol = {
        v.cell["protocol"]: v for v in first_views if v.cell["epsilon"] == epsilon
    }
    rows = [
        row
        for name, view in views_by_protocol.items()
        for row in _encoder_rows(str(name), view)
    ]
    n_classes = len(first_views[0].metadata("ingest")["classes"])
    return CodeReport(rows, float(epsilon), n_classes) if rows else None


def _encoder_rows(series: str, view: RunView) -> Iterator[EncoderRow]:
    task = Task.from_json(view.metadata("privatize")["task"])
    try:
        numbers = encoder_efficiency(task.encoder, len(task.classes), task.epsilon)
    except UserError:  # too many outputs to tell how often the label is kept
        return
    yield _encoder_row(series, numbers)


def _encoder_row(series: str, numbers: Efficiency) -> EncoderRow:
    return EncoderRow(
        series,
        numbers.encoder,
        f"{100 * numbers.retention:.1f}",
        f"{numbers.signal:.4g}",
        f"{numbers.measured:.3g} ± {2 * numbers.se:.1g}",
        f"{math.ceil(9 / numbers.signal):,}",
        numbers.nbytes,
    )
