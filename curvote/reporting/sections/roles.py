"""Who played which role in a replicate of a run."""

from __future__ import annotations

import math

from curvote.chain.stage import Columns
from curvote.protocols.roles import Roles, split
from curvote.run.results import RunView


def roles_of(view: RunView, replicate: int) -> tuple[Columns, Roles]:
    """Return a replicate's encoded clients, and the rows of each role among them."""
    settings = view.settings
    rows = view.columns("project", "encoded", view.place(replicate))
    groups = rows["group"] if settings.source.get("groups") else None
    number = replicate * math.prod(i.size(settings) for i in view.system.index[1:])
    sizes = settings.clients.model_dump()
    return rows, split(settings.seed, number, len(rows["label"]), sizes, groups)
