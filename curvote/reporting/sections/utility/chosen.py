"""What to send, if anything: the recommendation at each epsilon, and the least one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.chain.measure import SCORES
from curvote.protocols.measures import AGREEMENT
from curvote.protocols.utility.methods import FLOORS, RECOMMENDED
from curvote.protocols.utility.tables import RECOMMENDED as CHOSEN
from curvote.reporting.data import percent
from curvote.reporting.section import Section
from curvote.run.results import RunView


@dataclass(frozen=True)
class Row:
    """A model and a total epsilon: what to send, how often answers agree, and why."""

    learner: str
    epsilon: str
    words: str
    agreement: str
    floor: str
    reason: str


@dataclass(frozen=True, eq=False)
class Chosen(Section):
    """``rows`` of the first repetition; ``least`` are the lines on a target."""

    rows: Sequence[Row]
    least: Sequence[str]

    name: ClassVar[str] = "chosen"
    place: ClassVar[str] = "numbers"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Chosen | None:
    """Return the recommendations of every cell that has one."""
    own = [view for view in views if view.holds("report", CHOSEN.name)]
    if not own:
        return None
    return Chosen(list(map(_row, own)), list(_least(own)))


def _row(view: RunView) -> Row:
    chosen = view.columns("report", CHOSEN.name)
    return Row(
        str(view.cell["learner"]),
        f"{view.cell['epsilon']:g}",
        str(chosen["words"][0]) or "nothing",
        percent(_agreement(view, "report", RECOMMENDED.name)),
        percent(max(_floors(view))),
        str(chosen["reason"][0]),
    )


def _floors(view: RunView) -> Iterator[float]:
    """Yield how often answers agree where nothing is sent."""
    for floor in FLOORS:
        found = _agreement(view, "surface", floor.name)
        if found is not None:
            yield found


def _agreement(view: RunView, stage: str, method: str) -> float | None:
    told = view.read(stage, SCORES.name)
    mine = (told["replicate"] == 0) & (told["metric"] == AGREEMENT.name)
    mine &= (told["method"] == method) & told["group"].isna()
    values = told.loc[mine, "value"]
    return None if values.empty else float(values.iloc[0])


def _least(views: Sequence[RunView]) -> Iterator[str]:
    """Yield the least total epsilon at which each model reaches the target."""
    target = views[0].setting("deployments")["target"]
    if target is None:
        return
    for learner in dict.fromkeys(view.cell["learner"] for view in views):
        own = [view for view in views if view.cell["learner"] == learner]
        yield f"{learner}: {_reached(own, target)}"


def _reached(views: Sequence[RunView], target: float) -> str:
    for view in sorted(views, key=lambda view: view.cell["epsilon"]):
        words = str(view.columns("report", CHOSEN.name)["reaches"][0])
        if words:
            return (
                f"agreement {100 * target:g} % needs a total epsilon of"
                f" {view.cell['epsilon']:g} among those looked at: {words}."
            )
    return f"no total epsilon that was looked at reaches {100 * target:g} %."
