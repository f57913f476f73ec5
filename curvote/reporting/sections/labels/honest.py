"""Table of honest scores: what codes alone say of each model, beside the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.chain.measure import SCORES
from curvote.protocols.labels.methods import ACCURACY, LABELS
from curvote.protocols.labels.tables import HONEST
from curvote.reporting.data import NO_VALUE
from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import first_setting_views
from curvote.run.results import RunView

WORDS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "brier": "Brier score",
    "log_loss": "log loss",
}


@dataclass(frozen=True)
class HonestRow:
    """A model: its accuracy by codes with an interval, and by labels in a study."""

    series: str
    learner: str
    epsilon: str
    estimate: str
    interval: str
    true: str


@dataclass(frozen=True, eq=False)
class Honest(Section):
    """``rows`` of the first repetition, by codes that took no part in choosing."""

    rows: Sequence[HonestRow]
    holdout_size: int
    study: bool

    name: ClassVar[str] = "honest"
    place: ClassVar[str] = "results"

    @property
    def estimates(self) -> str:
        """Return the words for a stand-in for errors that nobody knows."""
        return "what codes that took no part in choosing say of each model"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Honest | None:
    """Return the honest scores of each model of the first setting."""
    scored_views = [
        view for view in first_setting_views(views) if len(_first_scores(view))
    ]
    if not scored_views:
        return None
    holdout_size = int(_first_scores(scored_views[0])["n"].iloc[0])
    return Honest(
        list(map(_honest_row, scored_views)),
        holdout_size,
        scored_views[0].holds("report"),
    )


def _first_scores(view: RunView) -> pd.DataFrame:
    table = view.read("train", HONEST.name)
    return pd.DataFrame(table[table["replicate"] == 0])


def _first_accuracy(view: RunView) -> pd.Series:
    scores = _first_scores(view)
    return scores[scores["scoring"] == ACCURACY.name].iloc[0]


def _honest_row(view: RunView) -> HonestRow:
    score, cell = _first_accuracy(view), view.cell
    return HonestRow(
        str(cell["protocol"]),
        str(cell["learner"]),
        f"{cell['epsilon']:g}",
        f"{100 * score['value']:.1f}",
        f"{100 * score['low']:.1f} to {100 * score['high']:.1f}",
        next(_true_accuracy(view), NO_VALUE),
    )


def _true_accuracy(view: RunView) -> Iterator[str]:
    if view.holds("report"):
        scores = view.read("report", SCORES.name)
        selected = (scores["replicate"] == 0) & (scores["metric"] == ACCURACY.name)
        selected &= scores["method"] == LABELS.name
        yield f"{100 * scores.loc[selected, 'value'].iloc[0]:.1f}"
