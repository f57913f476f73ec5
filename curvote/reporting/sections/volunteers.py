"""Who the volunteers are, whose records are public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.reporting.section import Section
from curvote.run.results import RunView


@dataclass(frozen=True, eq=False)
class Volunteers(Section):
    """How many clients were set aside as volunteers."""

    count: int

    name: ClassVar[str] = "volunteers"
    place: ClassVar[str] = "releases"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Volunteers:
    """Return the number of volunteers in the first of these cells."""
    return Volunteers(views[0].settings.clients.public)
