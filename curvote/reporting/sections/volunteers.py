"""Who the volunteers are, whose records are public, and what they alone would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.protocols.volunteers.asked import JOINED
from curvote.protocols.volunteers.methods import VOLUNTEERS
from curvote.reporting.section import Section
from curvote.run.results import RunView


@dataclass(frozen=True, eq=False)
class Volunteers(Section):
    """How many clients were set aside as volunteers, and for what.

    ``alone`` says that a classifier of their records stands among the scores,
    ``joined`` that their labels were joined with reports.
    """

    count: int
    alone: bool
    joined: bool

    name: ClassVar[str] = "volunteers"
    place: ClassVar[str] = "releases"


def gather(views: Sequence[RunView], scores: pd.DataFrame) -> Volunteers:
    """Return the number of volunteers in the first of these cells."""
    return Volunteers(
        views[0].settings.clients.public,
        alone=VOLUNTEERS.name in set(scores["method"]),
        joined=any(view.system.name == JOINED for view in views),
    )
