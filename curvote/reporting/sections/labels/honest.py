"""What the server says of its model, from codes alone, beside what is true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.chain.measure import SCORES
from curvote.protocols.labels.methods import ACCURACY, LABELS
from curvote.protocols.labels.tables import HONEST
from curvote.reporting.data import NOTHING
from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import first_setting
from curvote.run.results import RunView

WORDS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "brier": "Brier score",
    "log_loss": "log loss",
}


@dataclass(frozen=True)
class Row:
    """One model: what is said of it, with an interval, and what is true in a study."""

    series: str
    learner: str
    epsilon: str
    said: str
    interval: str
    true: str


@dataclass(frozen=True, eq=False)
class Honest(Section):
    """``rows`` of the first repetition; ``held`` codes took no part in choosing."""

    rows: Sequence[Row]
    held: int
    study: bool

    name: ClassVar[str] = "honest"
    place: ClassVar[str] = "results"

    @property
    def estimates(self) -> str:
        """What stands in for errors that nobody knows."""
        return "what codes that took no part in choosing say of each model"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Honest | None:
    """Return what is said of each model of the first setting."""
    own = [view for view in first_setting(views) if len(_first(view))]
    if not own:
        return None
    held = int(_first(own[0])["n"].iloc[0])
    return Honest(list(map(_row, own)), held, own[0].holds("report"))


def _first(view: RunView) -> pd.DataFrame:
    told = view.read("train", HONEST.name)
    return pd.DataFrame(told[told["replicate"] == 0])


def _told(view: RunView) -> pd.Series:
    told = _first(view)
    return told[told["scoring"] == ACCURACY.name].iloc[0]


def _row(view: RunView) -> Row:
    told, cell = _told(view), view.cell
    return Row(
        str(cell["protocol"]),
        str(cell["learner"]),
        f"{cell['epsilon']:g}",
        f"{100 * told['value']:.1f}",
        f"{100 * told['low']:.1f} to {100 * told['high']:.1f}",
        next(_true(view), NOTHING),
    )


def _true(view: RunView) -> Iterator[str]:
    if view.holds("report"):
        told = view.read("report", SCORES.name)
        mine = (told["replicate"] == 0) & (told["metric"] == ACCURACY.name)
        mine &= told["method"] == LABELS.name
        yield f"{100 * told.loc[mine, 'value'].iloc[0]:.1f}"
