"""Page section of clients: how many had each role."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.chain.stage import Columns
from curvote.messages.roles import ROLES, Roles, publisher_test_mask, split_roles
from curvote.pipeline.run.results import RunView
from curvote.report.data import Section

_ROLE_NAMES = {
    "public": "volunteers",
    "train": "training clients",
    "vote": "vote clients",
    "test": "test clients",
}


@dataclass(frozen=True, eq=False)
class Clients(Section):
    """Sizes of roles: (wanted, fewest, most) over the replicates."""

    sizes: Mapping[str, tuple[int, int, int]]
    groups: str | None = None

    name: ClassVar[str] = "clients"
    place: ClassVar[str] = "end"

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Rows of (role, wanted, actual) in words."""
        rows = []
        for role, (wanted, least, most) in self.sizes.items():
            actual = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            rows.append((_ROLE_NAMES.get(role, role), f"{wanted:,}", actual))
        return rows


def gather_clients(views: Sequence[RunView], _: pd.DataFrame) -> Clients:
    """Return the sizes of the roles in the first of these cells."""
    view = views[0]
    sizes = _role_sizes(view) if view.settings.intake is None else _message_sizes(view)
    return Clients(sizes, view.settings.source.get("groups"))


def _message_sizes(view: RunView) -> dict[str, tuple[int, int, int]]:
    """Return the sizes of roles from messages: no client is here."""
    outcome, sizes = view.system.production_metrics(view), view.settings.clients
    reports = int(outcome["reports"])
    # Where nobody votes everybody reports, the training clients first.
    votes = int(outcome.get("votes", max(0, reports - sizes.train)))
    trained = reports if "votes" in outcome else reports - votes
    return {
        "train": (sizes.train, trained, trained),
        "vote": (sizes.vote, votes, votes),
    }


def _role_sizes(view: RunView) -> dict[str, tuple[int, int, int]]:
    """Return (wanted, fewest, most) clients of each role."""
    wanted = view.settings.clients.model_dump()
    replicate_count = (
        view.settings.replicates if view.settings.source.get("groups") else 1
    )
    roles = [
        replicate_roles(view, replicate)[1] for replicate in range(replicate_count)
    ]
    counts = {
        role: [len(role_rows[role]) for role_rows in roles] for role in reversed(ROLES)
    }
    return {role: (wanted[role], min(n), max(n)) for role, n in counts.items()}


def replicate_roles(view: RunView, replicate: int) -> tuple[Columns, Roles]:
    """Return a replicate's encoded clients, and the rows of each role among them."""
    settings = view.settings
    rows = view.columns("project", "encoded", view.place(replicate))
    groups = rows["group"] if settings.source.get("groups") else None
    number = replicate * math.prod(i.size(settings) for i in view.system.index[1:])
    sizes = settings.clients.model_dump()
    n, aside = len(rows["label"]), publisher_test_mask(rows)
    return rows, split_roles(settings.seed, number, n, sizes, groups, test_mask=aside)
