"""Section of public features: what everybody knows of each record before any noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import first_setting_views
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
        """Return lines on what is public before any noise."""
        lines = [
            f"the {self.numbers} numbers of each of {self.n:,} records, all of them"
        ]
        if self.size is not None:
            lines.append(
                f"{self.size} principal components of them, made without a label: they"
                " cost nothing, tested records included"
            )
        return [*lines, "who takes part: the records whose labels were asked for"]


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Features | None:
    """Return the section on public features of the first setting."""
    first_views = first_setting_views(views)
    if not first_views:
        return None
    view = first_views[0]
    metadata, columns = (
        view.metadata("features"),
        view.columns("features", "features", (0,)),
    )
    n = len(columns["record"])
    return Features(n, len(metadata["grid"]), metadata["public"]["size"])
