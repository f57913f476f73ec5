"""Who took part: how many clients had each role."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.chain.stage import Columns
from curvote.protocols.roles import ROLES, Roles, set_aside, split
from curvote.reporting.section import Section
from curvote.run.results import RunView

_WORDS = {
    "public": "volunteers",
    "train": "training clients",
    "vote": "vote clients",
    "test": "test clients",
}


@dataclass(frozen=True, eq=False)
class Clients(Section):
    """``sizes`` maps a role to (asked, least, most) over the replicates."""

    sizes: Mapping[str, tuple[int, int, int]]
    groups: str | None = None

    name: ClassVar[str] = "clients"
    place: ClassVar[str] = "end"

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """(role, asked, got) in words."""
        rows = []
        for role, (asked, least, most) in self.sizes.items():
            got = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            rows.append((_WORDS.get(role, role), f"{asked:,}", got))
        return rows


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Clients:
    """Return the sizes of the roles in the first of these cells."""
    view = views[0]
    sizes = _sizes(view) if view.settings.intake is None else _came(view)
    return Clients(sizes, view.settings.source.get("groups"))


def _came(view: RunView) -> dict[str, tuple[int, int, int]]:
    """Count messages: nobody is here."""
    found, asked = view.system.outcome(view), view.settings.clients
    reports = int(found["reports"])
    # Where nobody votes everybody reports, the training clients first.
    votes = int(found.get("votes", max(0, reports - asked.train)))
    trained = reports if "votes" in found else reports - votes
    return {
        "train": (asked.train, trained, trained),
        "vote": (asked.vote, votes, votes),
    }


def _sizes(view: RunView) -> dict[str, tuple[int, int, int]]:
    """Count the clients; sizes vary only where groups do."""
    asked = view.settings.clients.model_dump()
    several = view.settings.replicates if view.settings.source.get("groups") else 1
    roles = [roles_of(view, replicate)[1] for replicate in range(several)]
    counts = {role: [len(one[role]) for one in roles] for role in reversed(ROLES)}
    return {role: (asked[role], min(n), max(n)) for role, n in counts.items()}


def roles_of(view: RunView, replicate: int) -> tuple[Columns, Roles]:
    """Return a replicate's encoded clients, and the rows of each role among them."""
    settings = view.settings
    rows = view.columns("project", "encoded", view.place(replicate))
    groups = rows["group"] if settings.source.get("groups") else None
    number = replicate * math.prod(i.size(settings) for i in view.system.index[1:])
    sizes = settings.clients.model_dump()
    n, aside = len(rows["label"]), set_aside(rows)
    return rows, split(settings.seed, number, n, sizes, groups, aside=aside)
