"""Page section of volunteers, whose records are public."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.messages.measures import VOLUNTEERS
from curvote.pipeline.run.results import RunView
from curvote.report.data import Section
from curvote.systems.direct.system import JOINED_PROTOCOL


@dataclass(frozen=True, eq=False)
class Volunteers(Section):
    """Number of clients who are volunteers, and their use.

    ``alone`` says that a classifier of their records stands among the scores,
    ``joined`` that their labels were joined with reports.
    """

    count: int
    alone: bool
    joined: bool

    name: ClassVar[str] = "volunteers"
    place: ClassVar[str] = "releases"


def gather_volunteers(views: Sequence[RunView], scores: pd.DataFrame) -> Volunteers:
    """Return the number of volunteers in the first of these cells."""
    return Volunteers(
        views[0].settings.clients.public,
        alone=VOLUNTEERS.name in set(scores["method"]),
        joined=any(view.system.name == JOINED_PROTOCOL for view in views),
    )
