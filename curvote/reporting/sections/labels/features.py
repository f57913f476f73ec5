"""What everybody knows of each record, and what was made of it before anybody spoke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import first_setting
from curvote.run.results import RunView


@dataclass(frozen=True)
class Features(Section):
    """``numbers`` of each of ``n`` records; ``size`` components of them, if any."""

    n: int
    numbers: int
    size: int | None

    name: ClassVar[str] = "features"
    place: ClassVar[str] = "releases"

    @property
    def public(self) -> Sequence[str]:
        """What is public before any noise."""
        told = [
            f"the {self.numbers} numbers of each of {self.n:,} records, all of them"
        ]
        if self.size is not None:
            told.append(
                f"{self.size} principal components of them, made without a label: they"
                " cost nothing, tested records included"
            )
        return [*told, "who takes part: the records whose labels were asked for"]


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Features | None:
    """Return what is public of the records of the first setting."""
    own = first_setting(views)
    if not own:
        return None
    view = own[0]
    facts, made = view.facts("features"), view.columns("features", "features", (0,))
    n = len(made["record"])
    return Features(n, len(facts["grid"]), facts["public"]["size"])
