"""Page section of volunteers, whose records are public."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.messages.measures import VOLUNTEERS
from curvote.pipeline.run.results import RunView
from curvote.report.data import Section
from curvote.systems.direct.system import JOINED_PROTOCOL
from curvote.systems.volunteers.messages import WHITENED_PROTOCOL


@dataclass(frozen=True, eq=False)
class Volunteers(Section):
    """Number of clients who are volunteers, and their use.

    ``alone`` says that a classifier of their records stands among the scores,
    ``joined`` that their labels were joined with reports, ``whitened`` that their
    numbers make the coordinates of reports.
    """

    count: int
    alone: bool
    joined: bool
    whitened: bool = False

    name: ClassVar[str] = "volunteers"
    place: ClassVar[str] = "releases"


def gather_volunteers(views: Sequence[RunView], scores: pd.DataFrame) -> Volunteers:
    """Return the number of volunteers in the first of these cells."""
    systems = {view.system.name for view in views}
    return Volunteers(
        views[0].settings.clients.public,
        alone=VOLUNTEERS.name in set(scores["method"]),
        joined=JOINED_PROTOCOL in systems,
        whitened=WHITENED_PROTOCOL in systems,
    )
